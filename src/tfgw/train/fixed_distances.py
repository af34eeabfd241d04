"""Training where nothing before the head is learned: what enters it never changes, so it is computed once."""

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWModel
from tfgw.train.batches import GRAPH_WEIGHT
from tfgw.train.evaluate import readouts


def has_fixed_distances(model: nn.Module) -> TypeGuard[TFGWModel]:
    """Whether the distances to the templates are the same before and after training."""
    return isinstance(model, TFGWModel) and all(name.startswith("head.") for name, _ in model.named_parameters())


class HeadOnly(nn.Module):
    """A model called with what enters its head in place of node features; its state is that of the whole model."""

    def __init__(self, model: TFGWModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Outputs, one row for each of ``x``."""
        outputs: Tensor = self.model.head(x)
        return outputs

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        return self.model.state_dict(*arguments, **named)

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        return self.model.load_state_dict(*arguments, **named)


def as_distances(model: TFGWModel, graphs: GraphDataset) -> GraphDataset:
    """Every graph replaced by a single node, whose features are what enters the head of the model."""
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    nodes = [
        Data(x=row[None], edge_index=no_edges, **{key: graph[key] for key in ("y", GRAPH_WEIGHT) if key in graph})
        for row, graph in zip(readouts(model, graphs), graphs, strict=True)
    ]
    return GraphDataset.from_graphs(nodes, name=graphs.name, classes=graphs.classes)

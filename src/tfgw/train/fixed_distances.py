"""Training of the head only: if nothing before it is learned, its input is computed once."""

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWModel
from tfgw.train.batches import GRAPH_WEIGHT
from tfgw.train.evaluate import readouts


def has_fixed_distances(model: nn.Module) -> TypeGuard[TFGWModel]:
    """Whether training does not change the distances to the templates."""
    return isinstance(model, TFGWModel) and all(name.startswith("head.") for name, _ in model.named_parameters())


class HeadOnly(nn.Module):
    """The head of a model, called with its input as node features; its state dict is that of the whole model."""

    def __init__(self, model: TFGWModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Return one row of outputs for each row of ``x``."""
        outputs: Tensor = self.model.head(x)
        return outputs

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        return self.model.state_dict(*arguments, **named)

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        return self.model.load_state_dict(*arguments, **named)


def as_distances(model: TFGWModel, graphs: GraphDataset) -> GraphDataset:
    """Replace every graph by a single node whose features are the input of the head."""
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    nodes = [
        Data(x=row[None], edge_index=no_edges, **{key: graph[key] for key in ("y", GRAPH_WEIGHT) if key in graph})
        for row, graph in zip(readouts(model, graphs), graphs, strict=True)
    ]
    return GraphDataset.from_graphs(nodes, name=graphs.name, classes=graphs.classes)

"""Training where nothing before the head is learned: the distances never change, so they are computed once."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWModel
from tfgw.train import embeddings


def is_fixed(model: TFGWModel) -> bool:
    """Whether the distances to the templates are the same before and after training."""
    return all(name.startswith("head.") for name, _ in model.named_parameters())


class Head(nn.Module):
    """A model's head, called with distances in the place of node features."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Outputs, one row for each of ``x``."""
        outputs: Tensor = self.head(x)
        return outputs


def as_distances(model: TFGWModel, graphs: GraphDataset) -> GraphDataset:
    """Every graph replaced by a single node, whose features are its distances to the templates."""
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    nodes = [
        Data(x=row[None], edge_index=no_edges, y=graph.y)
        for row, graph in zip(embeddings(model, graphs), graphs, strict=True)
    ]
    return GraphDataset.from_graphs(nodes, name=graphs.name, classes=graphs.classes)

"""PATCHY-SAN: a convolutional network on ordered neighbourhoods.

Niepert, Ahmed, Kutzkov: Learning Convolutional Neural Networks for Graphs. ICML 2016.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.baselines.receptive_fields import receptive_fields
from tfgw.datasets import GraphDataset
from tfgw.estimators.graphs import as_dataset
from tfgw.train import TrainConfig, num_outputs

KERNEL = 10
"""Kernel size of the second convolution."""


@dataclass(kw_only=True, eq=False, repr=False)
class PatchySAN(NeuralBaseline):
    """Receptive fields around the most central nodes, two convolutions and a dense layer, as in the original.

    The number of fields is the mean number of nodes of the training graphs. ``fit`` and ``predict`` first compute the
    fields of all graphs. Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        field_size: Number of nodes per field.
        edge_channels: Whether to use the edges between the nodes of a field as input, with ``edge_attr`` if the graphs
            have it.
        dropout: Dropout rate of the dense layer.
    """

    field_size: int = 10
    edge_channels: bool = False
    dropout: float = 0.5
    batch_size: int = 32
    lr: float = 0.001

    def _as_graphs(self, X: Any) -> list[Data]:
        graphs = super()._as_graphs(X)
        if self.edge_channels and isinstance(X[0], Data) and X[0].get("edge_attr") is not None:
            for number, (graph, given) in enumerate(zip(graphs, X, strict=True)):
                if given.get("edge_attr") is None or len(given.edge_attr) != graph.num_edges:
                    raise ValueError(f"graph {number}: edge_attr must have one row for each of {graph.num_edges} edges")
                graph.edge_attr = given.edge_attr.detach().cpu().double()
        return graphs

    def _learn_input(self, X: Any) -> list[Data]:
        if self.field_size < 1:
            raise ValueError(f"field_size: must be at least 1, got {self.field_size}")
        graphs = super()._learn_input(X)
        self.num_fields_ = max(1, round(sum(graph.num_nodes for graph in graphs) / len(graphs)))
        return graphs

    def _stack(self, graphs: list[Data], y: Tensor | None = None, *, classes: tuple[Any, ...] = ()) -> GraphDataset:
        """Replace every graph by one node per field, whose features are the values of the field."""
        no_edges = torch.zeros(2, 0, dtype=torch.int64)
        fields = [self._fields(graph) for graph in graphs]
        if all(bool(((field == 0) | (field == 1)).all()) for field in fields):
            fields = [
                field.to(torch.uint8) for field in fields
            ]  # takes an eighth of the memory; batches are floating-point
        return as_dataset([Data(x=field, edge_index=no_edges) for field in fields], y, classes=classes)

    def _fields(self, graph: Data) -> Tensor:
        if graph.x.shape[1] == 0:
            graph.x = graph.x.new_ones(graph.num_nodes, 1)
        return receptive_fields(
            graph, num_fields=self.num_fields_, field_size=self.field_size, edge_channels=self.edge_channels
        ).float()

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "PatchySANModel":
        channels = train.num_node_features
        node_values = self.field_size * max(1, self.n_features_in_)
        sizes = (node_values, channels - node_values) if self.edge_channels else (channels,)
        outputs = num_outputs(train, config.task)
        return PatchySANModel(sizes, outputs, num_fields=self.num_fields_, dropout=self.dropout)


class PatchySANModel(nn.Module):
    """The network, on one row per field.

    A convolution whose kernel and stride are both a field is a linear map of each field.

    Args:
        field_values: Number of values of a field from its nodes and, with edge channels, from its edges.
        out_channels: Number of classes.
        num_fields: Number of fields per graph.
        dropout: Dropout rate of the dense layer.
    """

    def __init__(self, field_values: tuple[int, ...], out_channels: int, *, num_fields: int, dropout: float) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: must be at least 0 and less than 1, got {dropout}")
        self.field_values = field_values
        self.num_fields = num_fields
        kernel = min(KERNEL, num_fields)
        self.first = nn.ModuleList(nn.Linear(values, 16) for values in field_values)
        self.second = nn.Conv1d(16 * len(field_values), 8, kernel)
        self.dense = nn.Linear(8 * (num_fields - kernel + 1), 128)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(128, out_channels)

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        """Class scores, ``(batch_size, out_channels)``."""
        parts = x.split(self.field_values, dim=1)
        fields = torch.cat([first(part) for first, part in zip(self.first, parts, strict=True)], dim=1).relu()
        sequence = fields.reshape(-1, self.num_fields, fields.shape[1]).transpose(1, 2)
        hidden = self.dense(self.second(sequence).relu().flatten(1)).relu()
        scores: Tensor = self.last(self.dropout(hidden))
        return scores

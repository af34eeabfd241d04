"""An MLP that ignores structure, as a baseline for graph neural networks.

It follows the structure-agnostic baselines of Errica, Podda, Bacciu, Micheli: A Fair Comparison of Graph Neural
Networks for Graph Classification. ICLR 2020.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.baselines.summaries import summaries
from tfgw.datasets import GraphDataset
from tfgw.estimators.graphs import as_dataset
from tfgw.nn.heads import HeadOptions, prediction_head
from tfgw.train import TrainConfig, num_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class MLP(NeuralBaseline):
    """The head of TFGW on the standardised number of nodes, number of edges and summed node features.

    Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        dropout: Dropout rate of the hidden units (default: as in the recipe).
    """

    dropout: float | None = None

    recipe_options: ClassVar = ("single_dropout", "hidden_layers", "normalize")

    def _stack(self, graphs: list[Data], y: Tensor | None = None, *, classes: tuple[Any, ...] = ()) -> GraphDataset:
        """Replace every graph by a single node whose features are the summary of the graph."""
        no_edges = torch.zeros(2, 0, dtype=torch.int64)
        nodes = [Data(x=row[None], edge_index=no_edges) for row in summaries(graphs)]
        return as_dataset(nodes, y, classes=classes)

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "MLPModel":
        return MLPModel(train.num_node_features, num_outputs(train, config.task), **self._architecture(settings))


class MLPModel(nn.Module):
    """The head of TFGW on the features of graphs with a single node."""

    supports_padding = True

    def __init__(self, in_channels: int, out_channels: int, **head: Unpack[HeadOptions]) -> None:
        super().__init__()
        self.head = prediction_head(in_channels, out_channels, **head)

    def forward(self, x: Tensor, *, batch_size: int | None = None, **_: Any) -> Tensor:
        """Class scores, ``(batch_size, out_channels)``."""
        scores: Tensor = self.head(x[:batch_size])  # trailing rows are padding
        return scores

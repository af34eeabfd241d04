"""DIFFPOOL: hierarchical pooling with learned clusters.

Ying, You, Morris, Ren, Hamilton, Leskovec: Hierarchical Graph Representation Learning with Differentiable Pooling.
NeurIPS 2018.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Unpack, cast

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.nn.heads import HeadOptions, prediction_head
from tfgw.train import TrainConfig, num_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class DiffPool(NeuralBaseline):
    """Dense GraphSAGE networks, between which nodes are softly merged into fewer and fewer clusters.

    The readout is the maximum of each feature on every level. The link and entropy losses of the original are part of
    the training loss. Adjacency matrices are dense, so memory grows with ``batch_size`` × nodes² of the largest graph
    in a batch. Training parameters and attributes are those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_pools: Number of pooling levels.
        ratio: Number of clusters of a level, as a share of the nodes of the largest training graph or of the previous
            clusters.
        num_layers: Number of layers of each network.
        width: Number of features per layer.
        dropout: Dropout rate of the head (default: as in the recipe).
    """

    num_pools: int = 1
    ratio: float = 0.25
    num_layers: int = 3
    width: int = 32
    dropout: float | None = None

    original_settings: ClassVar = {"batch_size": 32, "lr": 0.001}

    recipe_options: ClassVar = ("single_dropout", "hidden_layers", "normalize")

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "DiffPoolModel":
        nodes = max(graph.num_nodes for graph in train)
        options = self._architecture(settings)
        return DiffPoolModel(train.num_node_features, num_outputs(train, config.task), max_nodes=nodes, **options)


class DiffPoolModel(nn.Module):
    """The network; arguments as in :class:`DiffPool`.

    Attributes:
        auxiliary_loss: Link and entropy losses of the last call, summed over the levels.
    """

    auxiliary_loss: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        max_nodes: int,
        *,
        num_pools: int = DiffPool.num_pools,
        ratio: float = DiffPool.ratio,
        num_layers: int = DiffPool.num_layers,
        width: int = DiffPool.width,
        **head: Unpack[HeadOptions],
    ) -> None:
        super().__init__()
        for name, value in (("num_pools", num_pools), ("num_layers", num_layers), ("width", width)):
            if value < 1:
                raise ValueError(f"{name}: must be at least 1, got {value}")
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio: must be positive and at most 1, got {ratio}")
        self.embeddings = nn.ModuleList([DenseSAGE(in_channels, width, num_layers)])
        self.assignments = nn.ModuleList()
        channels, clusters = in_channels, max_nodes
        for _ in range(num_pools):
            clusters = ceil(ratio * clusters)
            self.assignments.append(DenseSAGE(channels, width, num_layers, out_channels=clusters))
            channels = num_layers * width
            self.embeddings.append(DenseSAGE(channels, width, num_layers))
        self.head = prediction_head((num_pools + 1) * num_layers * width, out_channels, **head)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Class scores, ``(batch_size, out_channels)``."""
        dense, mask = to_dense_batch(x, batch, batch_size=batch_size)
        adjacency = to_dense_adj(edge_index, batch, max_num_nodes=dense.shape[1], batch_size=len(dense)).to(x)
        losses, readouts = [x.new_zeros(())], []
        features, is_node = dense, cast(Tensor | None, mask)
        for embedding, assignment in zip(self.embeddings, self.assignments, strict=False):
            encoded = embedding(features, adjacency, is_node)
            readouts.append(_largest(encoded, is_node))
            clusters = assignment(features, adjacency, is_node)
            features, adjacency, link_loss, entropy_loss = dense_diff_pool(encoded, adjacency, clusters, is_node)
            losses += [link_loss, entropy_loss]
            is_node = None
        readouts.append(_largest(self.embeddings[-1](features, adjacency, None), None))
        self.auxiliary_loss = torch.stack(losses).sum()
        scores: Tensor = self.head(torch.cat(readouts, dim=1))
        return scores


class DenseSAGE(nn.Module):
    """GraphSAGE layers on dense adjacency matrices; the output is all layers, concatenated, or a linear map of it."""

    def __init__(self, in_channels: int, width: int, num_layers: int, *, out_channels: int | None = None) -> None:
        super().__init__()
        inputs = [in_channels, *[width] * (num_layers - 1)]
        self.convs = nn.ModuleList(DenseSAGEConv(size, width) for size in inputs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in inputs)
        self.last = nn.Identity() if out_channels is None else nn.Linear(num_layers * width, out_channels)

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None) -> Tensor:
        """Compute features ``(batch, nodes, channels)``; those of nodes outside ``mask`` are 0 before the last map."""
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask
        levels = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = conv(x, adjacency, mask)
            # Use statistics of real nodes only, so that the result of a graph does not depend on padding.
            x = torch.zeros_like(x).masked_scatter(mask.unsqueeze(2), norm(x[mask]).relu())
            levels.append(x)
        encoded: Tensor = self.last(torch.cat(levels, dim=2))
        return encoded


def _largest(x: Tensor, mask: Tensor | None) -> Tensor:
    return (x if mask is None else x.masked_fill(~mask.unsqueeze(2), -torch.inf)).amax(1)

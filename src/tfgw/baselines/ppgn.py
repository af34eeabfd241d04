"""Provably powerful graph networks: matrix products that are as powerful as the 3-Weisfeiler–Lehman test.

Maron, Ben-Hamu, Serviansky, Lipman: Provably Powerful Graph Networks. NeurIPS 2019.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfgw.baselines.neural_baseline import NeuralBaseline
from tfgw.datasets import GraphDataset
from tfgw.train import TrainConfig, num_outputs
from tfgw.train.config import Precision

VALUES = 2**24
"""Maximum size of a feature tensor, nodes² × graphs × width, that is processed at a time, unless one graph has more."""


@dataclass(kw_only=True, eq=False, repr=False)
class PPGN(NeuralBaseline):
    """Blocks of two MLPs on every pair of nodes, whose outputs are multiplied as matrices.

    Time grows with nodes³ and memory with nodes² × ``width``. A batch is processed in parts that fit; several parts are
    recomputed in the backward pass, so that memory does not grow with the batch. Training parameters and attributes are
    those of :class:`tfgw.estimators.TFGWClassifier`.

    Args:
        num_blocks: Number of blocks.
        width: Number of features per pair of nodes in each block.
        depth: Number of layers of each MLP.
    """

    num_blocks: int = 3
    width: int = 400
    depth: int = 2
    batch_size: int = 32
    lr: float = 0.0001
    precision: Precision = "float32"

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> "PPGNModel":
        return PPGNModel(train.num_node_features, num_outputs(train, config.task), **self._architecture(settings))


class PPGNModel(nn.Module):
    """The network; arguments as in :class:`PPGN`."""

    def __init__(self, in_channels: int, out_channels: int, *, num_blocks: int, width: int, depth: int) -> None:
        super().__init__()
        for name, value in (("num_blocks", num_blocks), ("width", width), ("depth", depth)):
            if value < 1:
                raise ValueError(f"{name}: must be at least 1, got {value}")
        self.width = width
        inputs = [1 + in_channels, *[width] * (num_blocks - 1)]
        self.blocks = nn.ModuleList(Block(size, width, depth) for size in inputs)
        self.readouts = nn.ModuleList(nn.Linear(2 * width, out_channels) for _ in inputs)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, batch_size: int | None = None
    ) -> Tensor:
        """Class scores, ``(batch_size, out_channels)``."""
        batch = torch.zeros(len(x), dtype=torch.int64, device=x.device) if batch is None else batch
        sizes = batch.bincount(minlength=batch_size or 0)
        graphs = DenseGraphs(x, edge_index, batch, sizes)
        parts = list(self._parts(sizes))
        if len(parts) > 1 and torch.is_grad_enabled():
            scores = [checkpoint(self._scores, graphs, part, use_reentrant=False) for part in parts]
        else:
            scores = [self._scores(graphs, part) for part in parts]
        return torch.cat(scores)[torch.cat(parts).argsort()]

    def _parts(self, sizes: Tensor) -> Iterator[Tensor]:
        """Yield graphs of similar size to process together."""
        part: list[int] = []
        for graph in sizes.argsort().tolist():
            if part and (len(part) + 1) * int(sizes[graph]) ** 2 * self.width > VALUES:
                yield torch.tensor(part, device=sizes.device)
                part = []
            part.append(graph)
        yield torch.tensor(part, device=sizes.device)

    def _scores(self, graphs: "DenseGraphs", part: Tensor) -> Tensor:
        features, mask = graphs.tensors(part)
        is_large = features.shape[2] ** 2 * len(part) * self.width > VALUES
        total: Tensor | float = 0.0
        for block, readout in zip(self.blocks, self.readouts, strict=True):
            if is_large and torch.is_grad_enabled():
                features = checkpoint(block, features, mask, use_reentrant=False)
            else:
                features = block(features, mask)
            total = total + readout(largest(features, mask))
        assert isinstance(total, Tensor)
        return total


class Block(nn.Module):
    """Two MLPs on each pair of nodes, the product of their outputs, and a linear map of the product and the input."""

    def __init__(self, in_channels: int, width: int, depth: int) -> None:
        super().__init__()
        self.left = _perceptron(in_channels, width, depth)
        self.right = _perceptron(in_channels, width, depth)
        self.skip = nn.Conv2d(in_channels + width, width, 1)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Map ``(graphs, in_channels, n, n)`` to ``(graphs, width, n, n)``; pairs outside the mask are 0."""
        product = (self.left(features) * mask) @ (self.right(features) * mask)
        mapped: Tensor = self.skip(torch.cat([features, product], dim=1)) * mask
        return mapped


class DenseGraphs:
    """A batch whose graphs are converted to dense tensors in parts."""

    def __init__(self, x: Tensor, edge_index: Tensor, batch: Tensor, sizes: Tensor) -> None:
        self.x, self.edge_index, self.batch, self.sizes = x, edge_index, batch, sizes
        self.first = sizes.cumsum(0) - sizes

    def tensors(self, part: Tensor) -> tuple[Tensor, Tensor]:
        """Return adjacency and diagonal features, ``(graphs, 1 + channels, n, n)``, and the mask of real pairs."""
        nodes = int(self.sizes[part].max())
        place = torch.full_like(self.sizes, -1)
        place[part] = torch.arange(len(part), device=part.device)
        features = self.x.new_zeros(len(part), 1 + self.x.shape[1], nodes, nodes)
        source, target = self.edge_index[:, place[self.batch[self.edge_index[0]]] >= 0]
        shift = self.first[self.batch[source]]
        features[place[self.batch[source]], 0, source - shift, target - shift] = 1
        chosen = (place[self.batch] >= 0).nonzero().squeeze(1)
        row = chosen - self.first[self.batch[chosen]]
        features[place[self.batch[chosen]], 1:, row, row] = self.x[chosen]
        is_node = torch.arange(nodes, device=part.device) < self.sizes[part][:, None]
        return features, (is_node[:, None, :, None] & is_node[:, None, None, :]).to(features)


def largest(features: Tensor, mask: Tensor) -> Tensor:
    """Return the maxima on and off the diagonal, concatenated; a graph of one node has 0 off the diagonal."""
    diagonal = features.diagonal(dim1=2, dim2=3).masked_fill(mask.diagonal(dim1=2, dim2=3) == 0, -torch.inf)
    is_off = (mask * (1 - torch.eye(mask.shape[-1], device=mask.device, dtype=mask.dtype))) > 0
    off = features.masked_fill(~is_off, -torch.inf).flatten(2).amax(2)
    return torch.cat([diagonal.amax(2), off.masked_fill(off == -torch.inf, 0)], dim=1)


def _perceptron(in_channels: int, width: int, depth: int) -> nn.Sequential:
    sizes = [in_channels, *[width] * depth]
    layers = [[nn.Conv2d(before, after, 1), nn.ReLU()] for before, after in pairwise(sizes)]
    return nn.Sequential(*(module for layer in layers for module in layer))

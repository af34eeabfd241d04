"""Graphs in the input formats of the solver: concatenated, or padded to equal size with nodes of zero weight."""

from collections.abc import Sequence

import torch
from torch import Tensor


def graph_of_each_node(sizes: Sequence[int]) -> Tensor:
    """Return ``batch`` as in PyTorch Geometric."""
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def padded(parts: Sequence[Tensor], nodes: int) -> Tensor:
    """Stack ``(n, ...)`` tensors of different n as ``(count, nodes, ...)``, padded with zeros."""
    stacked = parts[0].new_zeros(len(parts), nodes, *parts[0].shape[1:])
    for number, part in enumerate(parts):
        stacked[number, : len(part)] = part
    return stacked


def uniform_weights(sizes: Sequence[int]) -> Tensor:
    """Return weights of templates padded to the largest of ``sizes``: uniform over the nodes, 0 for padding."""
    return padded([torch.full((size,), 1 / size, dtype=torch.float64) for size in sizes], max(sizes))

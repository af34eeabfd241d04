"""Batches with a fixed number of nodes, of which those at the end are there for nothing.

A CUDA graph replays the same kernels on memory of the same size. Batches of graphs differ in size: they are padded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from torch import Tensor, nn


class Rows(NamedTuple):
    """Which rows of a padded batch are nodes.

    Attributes:
        is_node: 1, or 0 for padding, ``(num_rows, 1)``, in the precision of the features.
        share: The same, divided by the number of nodes.
        correction: From the variance of the nodes to that of what they are drawn from.
    """

    is_node: Tensor
    share: Tensor
    correction: Tensor

    @classmethod
    def where(cls, is_node: Tensor) -> "Rows":
        """What follows from ``is_node``."""
        number = is_node.sum()
        return cls(is_node, is_node / number, correction(number))


def correction(number: Tensor) -> Tensor:
    """number / (number - 1), or 1 for a single node."""
    return number / (number - 1).clamp_min(1)


class KnowsPadding(nn.Module):
    """A layer for which it matters which rows are nodes; for all others, rows have nothing to do with each other."""

    padded_rows: Rows | None = None
    """``None`` where there is no padding."""


@contextmanager
def padded(model: nn.Module, rows: Rows) -> Iterator[None]:
    """Inside the block, ``model`` is called with a padded batch, in which padding has ``batch_size`` as its graph."""
    layers = [layer for layer in model.modules() if isinstance(layer, KnowsPadding)]
    for layer in layers:
        layer.padded_rows = rows
    try:
        yield
    finally:
        for layer in layers:
            layer.padded_rows = None

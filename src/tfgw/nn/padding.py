"""Padded batches: a fixed number of rows, of which the trailing ones are padding.

A CUDA graph replays the same kernels on memory of the same size, but batches of graphs differ in size, so they are
padded. The padding of the current batch is a context, like :class:`torch.autocast`: inside :func:`use_padding`, modules
call :func:`current_padding` to find out which rows are nodes. :mod:`tfgw.train.cuda_graph` states the contract for
modules.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import NamedTuple

import torch
from torch import Tensor


class Rows(NamedTuple):
    """Which rows of a padded batch are nodes.

    Attributes:
        is_node: 1 for nodes and 0 for padding, ``(num_rows, 1)``, in the precision of the features.
        number: Number of nodes, in the same precision.
        links: The ``edge_index`` of the batch if every edge between nodes has its reverse and edges are sorted by their
            first node.
    """

    is_node: Tensor
    number: Tensor
    links: Tensor | None = None

    @classmethod
    def where(cls, is_node: Tensor, links: Tensor | None = None) -> "Rows":
        """Count the nodes."""
        return cls(is_node, is_node.sum(), links)

    @property
    def share(self) -> Tensor:
        """``is_node`` divided by the number of nodes: ``(share * x).sum(0)`` is the mean over the nodes."""
        return self.is_node / self.number

    @property
    def correction(self) -> Tensor:
        """Bessel's correction, from the variance of the nodes to an unbiased estimate."""
        return bessel_correction(self.number)


class PaddedShape(NamedTuple):
    """Size of a padded batch, and the GPU it is on."""

    device: torch.device
    graphs: int
    nodes: int


def bessel_correction(number: Tensor) -> Tensor:
    """number / (number - 1), or 1 for a single node."""
    return number / (number - 1).clamp_min(1)


def current_padding() -> Rows | None:
    """Return which rows of the current batch are nodes, or ``None`` if it is not padded.

    Call it in ``forward`` only: the backward pass runs in other threads, which do not have this context.
    """
    return _current.rows


@contextmanager
def use_padding(rows: Rows) -> Iterator[None]:
    """Declare that this thread calls modules with a padded batch; the graph index of padding is ``batch_size``."""
    before = _current.rows
    _current.rows = rows
    try:
        yield
    finally:
        _current.rows = before


class _Current(local):
    """Thread-local rather than a ``ContextVar``, which :func:`torch.compile` cannot trace."""

    rows: Rows | None = None


_current = _Current()

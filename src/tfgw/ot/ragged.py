"""Convert lists of graphs to one ragged set: in canonical order, without duplicates, sorted by size.

Data, … | GraphBatch ─ graph_lists ─▶ a Part per graph ─ canonical order ─▶ RaggedSet ─ stacked ─▶ native code

The rank of a graph is its position in the set. Graphs are sorted by size, then by a digest of their content.
"""

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.inputs import GraphBatch
from tfgw.ot.order import canonical_order


class Part(NamedTuple):
    """One graph. Its structure is a list of edges, a matrix, or missing."""

    x: np.ndarray
    """``(n, num_features)``"""
    node_weights: np.ndarray
    """``(n,)``"""
    edge_index: np.ndarray | None
    """``(2, num_edges)``, sorted"""
    edge_weight: np.ndarray | None
    structure: np.ndarray | None
    """``(n, n)``"""

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including those of weight 0."""
        return len(self.x)

    def digest(self) -> bytes:
        """Return a digest of the content: graphs with equal tensors have equal digests."""
        content = hashlib.blake2b(repr([None if a is None else a.shape for a in self]).encode(), digest_size=16)
        for array in self:
            if array is not None:
                content.update(array.tobytes())
        return content.digest()

    def reordered(self, order: np.ndarray) -> "Part":
        """Return the graph with its nodes in this order."""
        edge_index, edge_weight = self.edge_index, self.edge_weight
        if edge_index is not None:
            edge_index, edge_weight = sorted_edges(order.argsort()[edge_index], edge_weight)
        structure = None if self.structure is None else self.structure[np.ix_(order, order)]
        return Part(self.x[order], self.node_weights[order], edge_index, edge_weight, structure)


class MergedNodes(NamedTuple):
    """The original nodes of a graph whose nodes with equal features have been merged."""

    place: np.ndarray
    """Merged node of each original node, ``(n,)``"""
    weights: np.ndarray
    """Weight of each original node, ``(n,)``"""


class GraphList(list[Part]):
    """Valid graphs, in the given order. :func:`tfgw.ot.graph_lists.read_graphs` creates one, to be compared often.

    Args:
        parts: The graphs.
        merged: The original nodes of each graph; ``None`` if no nodes were merged.
    """

    def __init__(self, parts: Iterable[Part], merged: Sequence[MergedNodes] | None = None) -> None:
        super().__init__(parts)
        self.merged = merged

    @cached_property
    def digests(self) -> list[bytes]:
        """Digest of each graph."""
        return [part.digest() for part in self]


class RaggedSet(NamedTuple):
    """The different graphs of one or two lists, by rank, and the rank of each graph of the lists."""

    parts: list[Part]
    ranks: list[np.ndarray]
    digest: bytes
    """Digest of the content and order of all lists."""

    def native(self, *, alpha: float, node_cost: int, threads: int) -> Any:
        """Return the set as an object of native code."""
        return _core.GraphSet(native_graphs(self.parts), alpha=alpha, node_cost=node_cost, threads=threads)

    @property
    def sizes(self) -> np.ndarray:
        """Number of nodes of each graph."""
        return np.array([part.num_nodes for part in self.parts])


def ragged_set(lists: Sequence[GraphList], *, canonical: bool) -> RaggedSet:
    """Collect the graphs of one or two lists; ``canonical`` puts their nodes in canonical order."""
    lengths = [len(graphs) for graphs in lists]
    parts = [part for graphs in lists for part in graphs]
    if canonical:
        parts = _in_canonical_order(parts)
        digests = [part.digest() for part in parts]
    else:
        digests = [digest for graphs in lists for digest in graphs.digests]
    different = dict(zip(digests, parts, strict=True))
    order = sorted(different, key=lambda digest: (different[digest].num_nodes, digest))
    rank = {digest: number for number, digest in enumerate(order)}
    ranks = np.split(np.array([rank[digest] for digest in digests]), np.cumsum(lengths)[:-1])
    content = hashlib.blake2b(repr(lengths).encode() + b"".join(digests), digest_size=32)
    return RaggedSet([different[digest] for digest in order], ranks, content.digest())


def _in_canonical_order(parts: Sequence[Part]) -> list[Part]:
    sizes, arrays = np.array([part.num_nodes for part in parts]), stacked(parts)
    ptr = arrays.pop("ptr")
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items() if array is not None}
    batch = torch.from_numpy(np.repeat(np.arange(len(parts)), sizes))
    found = canonical_order(GraphBatch(batch=batch, **tensors))
    for size in sizes[~found.exact.numpy()]:
        warnings.warn(
            f"a graph of {size} nodes is too symmetric to be put in canonical order; its distances may depend on how"
            " its nodes are numbered",
            stacklevel=5,
        )
    orders = np.split(found.order.numpy() - np.repeat(ptr[:-1], sizes), ptr[1:-1])
    return [part.reordered(order) for part, order in zip(parts, orders, strict=True)]


def native_graphs(parts: Sequence[Part]) -> Any:
    """Convert graphs to the format of native code."""
    return _core.GivenGraphs(**stacked(parts))


def stacked(parts: Sequence[Part]) -> dict[str, Any]:
    """Concatenate the fields of all graphs. Edges refer to stacked nodes; the nodes of a graph begin at its ``ptr``."""
    fields: dict[str, Any] = {"ptr": np.cumsum([0, *(part.num_nodes for part in parts)])}
    for name, first in parts[0]._asdict().items():
        arrays = [getattr(part, name) for part in parts]
        if first is None:
            fields[name] = None
        elif name == "edge_index":
            shifted = [array + shift for array, shift in zip(arrays, fields["ptr"][:-1], strict=True)]
            fields[name] = np.ascontiguousarray(np.concatenate(shifted, axis=1))
        else:
            fields[name] = np.concatenate([array.ravel() if name == "structure" else array for array in arrays])
    return fields


def sorted_edges(edge_index: np.ndarray, edge_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Sort edges by source and target, and repeated edges by weight."""
    keys = (edge_index[1], edge_index[0])  # the last key is the primary one
    order = np.lexsort(keys if edge_weight is None else (edge_weight, *keys))
    return edge_index[:, order], None if edge_weight is None else edge_weight[order]

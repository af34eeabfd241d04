"""Optimal transport distances between all pairs of graphs, in a table that identifies graphs by their content.

graphs ─ unique ones ─ prepared by a comparison ─▶ ot.pairwise ─▶ table ─▶ disk
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tfgw import ot


@dataclass(frozen=True)
class Comparison(ABC):
    """A distance between graphs, computed with ``num_threads`` solver threads."""

    num_threads: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the distance with all its parameters, usable as part of a path."""

    @abstractmethod
    def prepare(self, graph: Data) -> Data:
        """Return the graph in the form that :func:`tfgw.ot.pairwise` compares."""

    @property
    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Further arguments of :func:`tfgw.ot.pairwise`."""

    def distances(
        self, graphs: Sequence[Data], others: Sequence[Data] | None = None, *, progress_bar: bool = False
    ) -> np.ndarray:
        """Compute all distances, ``(num_graphs, num_others)``; without ``others``, between ``graphs`` themselves."""
        found = ot.pairwise(
            [self.prepare(graph) for graph in graphs],
            None if others is None else [self.prepare(graph) for graph in others],
            **self.options,
            canonical=False,  # the graphs of a DistanceKernel are in canonical order
            progress_bar=progress_bar,
            num_threads=self.num_threads,
        )
        return found.numpy()


def key_of(graph: Data) -> str:
    """Return a hash of the content of a graph that a comparison uses: its features and edges."""
    source, target = graph.edge_index.numpy()
    order = np.lexsort((target, source))
    content = hashlib.sha256(str(tuple(graph.x.shape)).encode())
    for array in (graph.x.double().numpy(), source[order], target[order]):
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:32]


@dataclass(frozen=True)
class DistanceTable:
    """Distances between graphs, which are identified by their keys."""

    keys: np.ndarray
    matrix: np.ndarray

    def covers(self, keys: Sequence[str]) -> bool:
        """Whether all of these graphs are in the table."""
        return set(keys) <= set(self.keys.tolist())

    def between(self, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
        """Return the distances between the graphs of ``rows`` and those of ``columns``."""
        place = {key: number for number, key in enumerate(self.keys.tolist())}
        return self.matrix[np.ix_([place[key] for key in rows], [place[key] for key in columns])]


def all_pairs(graphs: Sequence[Data], comparison: Comparison, *, progress_bar: bool = False) -> DistanceTable:
    """Compute the distances between all different graphs."""
    unique = {key_of(graph): graph for graph in graphs}
    matrix = comparison.distances(list(unique.values()), progress_bar=progress_bar)
    return DistanceTable(np.array(list(unique)), matrix)

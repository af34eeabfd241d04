"""Optimal transport distances between all pairs of graphs, by the batched solver.

graphs ─ unique ones, by size ─▶ chunks of templates × chunks of graphs ─ one solver call each ─▶ table ─▶ disk

The smaller graph of a pair is always the template (of two equally large ones, that with the smaller key): what is
computed for a pair depends on the pair alone, not on its place in a list. Half of the matrix is computed and mirrored,
which also makes it symmetric: a local minimum of Fused Gromov–Wasserstein found from one side need not be the one found
from the other. A graph is at distance 0 from itself.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm

ENTRIES = 2**22
"""Entries of all cost matrices of one solver call, at most, unless a single pair has more: 32 MB."""

TEMPLATES = 64
"""Templates of one solver call, at most."""


@dataclass(frozen=True)
class Comparison(ABC):
    """A distance between graphs, from a solver with ``num_threads`` threads."""

    num_threads: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str:
        """Says which distance it is, with all parameters that matter, as part of a path."""

    @abstractmethod
    def prepare(self, graph: Data) -> Any:
        """What is computed once for each graph."""

    @abstractmethod
    def distances(self, graphs: Sequence[Any], templates: Sequence[Any]) -> Tensor:
        """All distances between prepared graphs, ``(num_graphs, num_templates)``, in one call of the solver."""


def key_of(graph: Data) -> str:
    """A hash of everything that a comparison sees of a graph: its features and its edges."""
    source, target = graph.edge_index.numpy()
    order = np.lexsort((target, source))
    content = hashlib.sha256(str(tuple(graph.x.shape)).encode())
    for array in (graph.x.double().numpy(), source[order], target[order]):
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:32]


@dataclass(frozen=True)
class DistanceTable:
    """Distances between graphs that are known by their keys; some may be missing (NaN)."""

    keys: np.ndarray
    matrix: np.ndarray

    def covers(self, keys: Sequence[str]) -> bool:
        """Whether all of these graphs are in the table."""
        return set(keys) <= set(self.keys.tolist())

    def between(self, rows: Sequence[str], columns: Sequence[str]) -> np.ndarray:
        """The distances of each row to each column."""
        place = {key: number for number, key in enumerate(self.keys.tolist())}
        return self.matrix[np.ix_([place[key] for key in rows], [place[key] for key in columns])]


def all_pairs(graphs: Sequence[Data], comparison: Comparison, *, progress_bar: bool = False) -> DistanceTable:
    """The distances between all pairs; graphs with equal keys are compared once."""
    unique = _by_size(graphs)
    return _compare(unique, [(list(unique), list(unique))], comparison, progress_bar)


def cross_pairs(
    rows: Sequence[Data], columns: Sequence[Data], comparison: Comparison, *, progress_bar: bool = False
) -> DistanceTable:
    """The distances between each of ``rows`` and each of ``columns``; others are missing."""
    unique = _by_size([*rows, *columns])
    first, second = ([key for key in unique if key in part] for part in (_keys(rows), _keys(columns)))
    return _compare(unique, [(first, second), (second, first)], comparison, progress_bar)


def _keys(graphs: Sequence[Data]) -> set[str]:
    return {key_of(graph) for graph in graphs}


def _by_size(graphs: Sequence[Data]) -> dict[str, Data]:
    """Every different graph once, small ones first."""
    unique = {key_of(graph): graph for graph in graphs}
    return dict(sorted(unique.items(), key=lambda item: (item[1].num_nodes, item[0])))


def _compare(
    unique: dict[str, Data],
    sides: Sequence[tuple[list[str], list[str]]],
    comparison: Comparison,
    progress_bar: bool,
) -> DistanceTable:
    """For each pair of sides, compare templates from the first with those of the second that come after them."""
    rank = {key: number for number, key in enumerate(unique)}
    matrix = np.full((len(unique), len(unique)), np.nan)
    np.fill_diagonal(matrix, 0)
    blocks = [block for templates, others in sides for block in _blocks(templates, others, rank, unique)]
    total = sum(len(templates) * len(others) for templates, others in blocks)
    prepared = {key: comparison.prepare(graph) for key, graph in unique.items()}
    with tqdm(total=total, unit="pair", desc=comparison.name, disable=not progress_bar) as bar:
        for templates, others in blocks:
            found = comparison.distances([prepared[key] for key in others], [prepared[key] for key in templates])
            columns, rows = np.array([rank[key] for key in templates]), np.array([rank[key] for key in others])
            is_after = rows[:, None] > columns[None, :]
            r, c = np.nonzero(is_after)
            matrix[rows[r], columns[c]] = matrix[columns[c], rows[r]] = found.numpy()[r, c]
            bar.update(len(templates) * len(others))
    return DistanceTable(np.array(list(unique)), matrix)


def _blocks(
    templates: list[str], others: list[str], rank: dict[str, int], graphs: dict[str, Data]
) -> Iterator[tuple[list[str], list[str]]]:
    """Templates and graphs of each solver call; graphs that come before all templates of the call are left out."""
    for first in range(0, len(templates), TEMPLATES):
        chunk = templates[first : first + TEMPLATES]
        columns = len(chunk) * graphs[chunk[-1]].num_nodes
        later = [key for key in others if rank[key] > rank[chunk[0]]]
        begin, nodes = 0, 0
        for end, key in enumerate(later):
            if nodes and (nodes + graphs[key].num_nodes) * columns > ENTRIES:
                yield chunk, later[begin:end]
                begin, nodes = end, 0
            nodes += graphs[key].num_nodes
        if later[begin:]:
            yield chunk, later[begin:]

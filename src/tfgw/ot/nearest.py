"""Nearest neighbours of graphs. Lower bounds rule out most pairs, which are then never solved.

marginal bounds ─ best candidates of each graph ─▶ lower bounds ─ best of these ─▶ solve: a radius for each graph
marginal bounds ─ within the radius ─▶ lower bounds ─ within the radius ─▶ solve: smaller radii

The CPU computes the bounds. On a GPU, pairs are in the same blocks as in ``pairwise``, and pairs that are ruled out are
left out: so the others have the same distances, bit for bit. While the GPU solves a block, the CPU computes the bounds
of the next one.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.graph_lists import device_of, read_lists
from tfgw.ot.inputs import GraphBatch, check_integer
from tfgw.ot.pair_blocks import PairBlock, PairBlocks, solves_on_gpu
from tfgw.ot.pair_solver import CHUNK, PairGrid, PairOptions, PairSolver
from tfgw.ot.pairwise import checked_device, progress
from tfgw.ot.problem import MAX_ITER, TOL
from tfgw.ot.ragged import RaggedSet, ragged_set
from tfgw.ot.solved_blocks import solved_blocks
from tfgw.ot.starts import START_KINDS

BOUNDED_FIRST = 4
"""Number of candidates per neighbour whose lower bound is computed first; the best of them are solved."""
ROUNDING = 1e-12
"""Margin by which a bound has to exceed a radius, relative to the largest cost."""


class Neighbours(NamedTuple):
    """The nearest graphs of each graph. The tensors are on the device of the solver.

    Attributes:
        indices: Indices of the neighbours, nearest first, ``(num_graphs, top)``. Ties are ordered by index.
        distances: Distances to the neighbours, ``(num_graphs, top)``.
        num_solved: Number of solved pairs of different graphs.
        num_pairs: Number of all pairs of different graphs.
    """

    indices: Tensor
    distances: Tensor
    num_solved: int
    num_pairs: int


def nearest(
    graphs: Iterable[Any] | GraphBatch,
    others: Iterable[Any] | GraphBatch | None = None,
    *,
    top: int,
    alpha: float,
    canonical: bool = True,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    n_starts: int = 1,
    start_kinds: Sequence[str] = START_KINDS,
    checkpoint: str | os.PathLike[str] | None = None,
    progress_bar: bool = False,
    num_threads: int | None = None,
    device: str | torch.device | None = None,
) -> Neighbours:
    """Find the nearest neighbours of each graph in Fused Gromov–Wasserstein distance, in the same or another list.

    >>> found = nearest(dataset, top=10, alpha=0.5)
    >>> found.indices[7], found.distances[7]                        # the ten graphs nearest to graph 7

    The result equals that of solving all pairs with :func:`pairwise` and taking the smallest values: a pair is skipped
    only if a lower bound over all couplings exceeds the distance of the last neighbour found so far. As in
    :func:`pairwise`, distances are local minima, and neighbours can change with the number of starts. On a GPU, the
    result equals that of :func:`pairwise` on the same GPU with the same lists.

    Args:
        graphs: The graphs, as in :func:`pairwise`.
        others: Graphs among which to find neighbours. If ``None``, neighbours are found among the other ``graphs``.
        top: Number of neighbours.
        alpha: Trade-off between features (0) and structure (1). This and all other arguments are as in
            :func:`pairwise`.
        canonical: Whether to put nodes in canonical order first.
        max_iter: Maximum number of Frank–Wolfe iterations per start.
        tol: Gap, relative to the value, at which a start has converged.
        n_starts: Number of starts; the best result is kept.
        start_kinds: Kinds of starts.
        checkpoint: File that stores distances as they are computed.
        progress_bar: Whether to show a progress bar.
        num_threads: Number of threads that compute lower bounds, and that solve on the CPU.
        device: Device of the solver, as in :func:`pairwise`. Lower bounds are computed on the CPU.

    Raises:
        ValueError: If an input is invalid; the message names the argument and the graph.
    """
    options = PairOptions.checked(alpha, max_iter, tol, n_starts, start_kinds)
    check_integer("top", top)
    where = device_of(graphs) if device is None else checked_device(device)
    lists = read_lists(graphs, others, features_only=options.alpha == 0)
    found = ragged_set(lists, canonical=canonical)
    candidates = len(found.ranks[-1]) - (others is None)
    if top > candidates:
        raise ValueError(f"top: must be at most {candidates}, the number of graphs to choose from, got {top}")
    on_gpu = solves_on_gpu(where)
    purpose = f"nearest {top}, on a GPU" if on_gpu else f"nearest {top}"
    solver = PairSolver(found, options, num_threads=num_threads, checkpoint=checkpoint, purpose=purpose.encode())
    blocks = PairBlocks(found, PairGrid.of(found), options, where) if on_gpu else None
    search = _Search(found, solver, blocks, options.alpha, top, among_themselves=others is None)
    with progress(2 * search.grid.num_pairs, progress_bar) as bar:
        search.solve_best_candidates(bar)
        search.solve_within_radius(bar)
    indices, distances = search.neighbours()
    return Neighbours(
        torch.from_numpy(indices).to(where),
        torch.from_numpy(distances).to(where),
        search.num_solved,
        search.grid.num_pairs,
    )


class _Known(NamedTuple):
    """Distances from queries to candidates, by rank."""

    query: np.ndarray
    candidate: np.ndarray
    distance: np.ndarray


class _Search:
    """Search over different graphs, by rank. A candidate counts once for each copy in the list."""

    def __init__(
        self,
        graphs: RaggedSet,
        solver: PairSolver,
        blocks: PairBlocks | None,
        alpha: float,
        top: int,
        *,
        among_themselves: bool,
    ) -> None:
        count = len(graphs.parts)
        self.grid = PairGrid.of(graphs)
        self.num_solved = 0
        self._blocks = blocks
        self._graphs, self._solver, self._top, self._among_themselves = graphs, solver, top, among_themselves
        self._has_bounds = alpha > 0  # for alpha = 0, the lower bound is the distance and takes as long
        self._copies = np.bincount(graphs.ranks[-1], minlength=count)
        self._is_query = np.bincount(graphs.ranks[0], minlength=count) > 0
        self._slack = ROUNDING * _largest_cost(graphs, alpha)
        self._radius = np.where(self._is_query, np.inf, -np.inf)
        own = self.grid.rows[self._copies[self.grid.rows] > 0]
        self._known = _Known(own, own, np.zeros(len(own)))  # each graph to itself
        self._solved = np.empty(0, dtype=np.int64)

    def solve_best_candidates(self, bar: Any) -> None:
        """Solve pairs that are likely to be near, which gives a radius for each graph."""
        wanted = min(self._top, len(self.grid.columns))
        step = max(1, CHUNK // len(self.grid.columns))
        pairs = [np.empty((0, 2), dtype=np.int64)]
        for first in range(0, len(self.grid.rows), step):
            rows = self.grid.rows[first : first + step]
            block = np.stack(np.meshgrid(rows, self.grid.columns, indexing="ij"), axis=-1)
            bounds = self._solver.marginal_bounds(block.reshape(-1, 2)).reshape(block.shape[:2])
            bounds[rows[:, None] == self.grid.columns[None, :]] = np.inf
            best = _smallest(bounds, BOUNDED_FIRST * wanted if self._has_bounds else wanted)
            block = np.take_along_axis(block, best[:, :, None], axis=1)
            if self._has_bounds:
                bounds = self._solver.lower_bounds(block.reshape(-1, 2)).reshape(block.shape[:2])
                bounds[block[:, :, 0] == block[:, :, 1]] = np.inf
                block = np.take_along_axis(block, _smallest(bounds, wanted)[:, :, None], axis=1)
            pairs.append(block.reshape(-1, 2))
            bar.update(round(self.grid.num_pairs * len(rows) / len(self.grid.rows)))
        different = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
        different = different[different[:, 0] != different[:, 1]]
        self._solve(different)
        self._solved = self._keys(different)

    def solve_within_radius(self, bar: Any) -> None:
        """Solve all pairs that may be nearer than the radius, and shrink the radius along the way."""
        rest = self.grid
        if self._blocks is not None:
            near = self._near_blocks(self._blocks, bar)
            for block, distances in solved_blocks(near, self._solver.journal):
                self._learn(block.pairs, distances[block.is_wanted])
            rest = self._blocks.rest()
        for pairs in rest.blocks():
            near_pairs = self._near(pairs)
            self._learn(near_pairs, self._solver.distances(near_pairs))
            bar.update(len(pairs))

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """Return indices and distances of the nearest graphs; ties are ordered by index."""
        queries, candidates = self._graphs.ranks[0], self._graphs.ranks[-1]
        members = np.split(np.argsort(candidates, kind="stable"), np.cumsum(self._copies)[:-1])
        known = self._known
        order = np.argsort(known.query, kind="stable")
        first = np.searchsorted(known.query[order], np.arange(len(self._copies) + 1))
        indices = np.empty((len(queries), self._top), dtype=np.int64)
        distances = np.empty(indices.shape)
        for number, query in enumerate(queries):
            mine = order[first[query] : first[query + 1]]
            numbers = np.concatenate([members[candidate] for candidate in known.candidate[mine]])
            values = np.repeat(known.distance[mine], self._copies[known.candidate[mine]])
            if self._among_themselves:
                others = numbers != number
                numbers, values = numbers[others], values[others]
            best = np.lexsort((numbers, values))[: self._top]
            indices[number], distances[number] = numbers[best], values[best]
        return indices, distances

    def _keys(self, pairs: np.ndarray) -> np.ndarray:
        low, high = np.sort(pairs, axis=1).T
        return low * len(self._copies) + high

    def _near_blocks(self, blocks: Iterable[PairBlock], bar: Any) -> Iterator[PairBlock]:
        """Yield each block with the pairs that may be nearer than the radius when its turn comes."""
        for block in blocks:
            yield block.only(self._near(block.pairs))
            bar.update(block.num_pairs)

    def _near(self, pairs: np.ndarray) -> np.ndarray:
        """Return the pairs that are not solved yet and may be nearer than the radius."""
        pairs = pairs[~np.isin(self._keys(pairs), self._solved, assume_unique=True)]
        pairs = pairs[self._may_be_near(pairs, self._solver.marginal_bounds(pairs))]
        return pairs[self._may_be_near(pairs, self._solver.lower_bounds(pairs))] if self._has_bounds else pairs

    def _may_be_near(self, pairs: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Whether the bound allows a pair to be among the nearest of either graph."""
        first, second = pairs.T
        radius = np.where(self._copies[second] > 0, self._radius[first], -np.inf)
        radius = np.maximum(radius, np.where(self._copies[first] > 0, self._radius[second], -np.inf))
        return bounds <= radius + self._slack

    def _solve(self, pairs: np.ndarray) -> None:
        """Solve pairs, given with the template first."""
        solved, distances = [], []
        if self._blocks is not None:
            chosen = (block.only(pairs) for block in self._blocks)
            for block, found in solved_blocks(chosen, self._solver.journal):
                solved.append(block.pairs)
                distances.append(found[block.is_wanted])
            pairs = pairs[~self._blocks.contains(pairs)]
        solved.append(pairs)
        distances.append(self._solver.distances(pairs))
        self._learn(np.concatenate(solved), np.concatenate(distances))

    def _learn(self, pairs: np.ndarray, distances: np.ndarray) -> None:
        """Shrink the radius of each graph to the distance of its last known neighbour."""
        self.num_solved += len(pairs)
        first, second = pairs.T
        both = _Known(
            np.concatenate([self._known.query, first, second]),
            np.concatenate([self._known.candidate, second, first]),
            np.concatenate([self._known.distance, distances, distances]),
        )
        matters = self._is_query[both.query] & (self._copies[both.candidate] > 0)
        order = np.flatnonzero(matters)
        order = order[np.lexsort((both.distance[order], both.query[order]))]
        query, candidate, distance = (column[order] for column in both)
        copies = self._copies[candidate] - (self._among_themselves & (candidate == query))
        # Number of neighbours of each query up to and including each candidate.
        total = np.cumsum(copies)
        starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
        before = np.repeat(total[starts] - copies[starts], np.diff(np.r_[starts, len(query)]))
        reaches = (total - before >= self._top) & (total - before - copies < self._top)
        self._radius[query[reaches]] = distance[reaches]
        near = distance <= self._radius[query]
        self._known = _Known(query[near], candidate[near], distance[near])


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the smallest values of each row, in any order."""
    if count >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    return np.argpartition(values, count - 1, axis=1)[:, :count]


def _largest_cost(graphs: RaggedSet, alpha: float) -> float:
    """Return an upper bound on the costs between features and between structure entries, the scale of rounding."""
    low = np.min([part.x.min(axis=0) for part in graphs.parts], axis=0)
    high = np.max([part.x.max(axis=0) for part in graphs.parts], axis=0)
    entries = 1.0
    for part in graphs.parts:
        values = part.edge_weight if part.structure is None else part.structure
        if values is not None and values.size:
            entries = max(entries, float(np.abs(values).max()))
    return float((1 - alpha) * ((high - low) ** 2).sum() + alpha * (2 * entries) ** 2)

"""Distances between all pairs of graphs. Each pair is solved once.

lists of graphs ─ ragged ─▶ different graphs by rank ─ pair_solver ─▶ chunks of pairs ─ native code ─▶ matrix
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.graph_lists import device_of, read_lists
from tfgw.ot.inputs import GraphBatch
from tfgw.ot.pair_blocks import PairBlock, PairBlocks, solves_on_gpu
from tfgw.ot.pair_solver import CHUNK, NODE_COSTS, PairGrid, PairOptions, PairSolver
from tfgw.ot.problem import MAX_ITER, TOL
from tfgw.ot.ragged import RaggedSet, ragged_set
from tfgw.ot.solved_blocks import solved_blocks
from tfgw.ot.starts import START_KINDS


def pairwise(
    graphs: Iterable[Any] | GraphBatch,
    others: Iterable[Any] | GraphBatch | None = None,
    *,
    alpha: float,
    pairs: Any = None,
    node_cost: str = NODE_COSTS[0],
    canonical: bool = True,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    n_starts: int = 1,
    start_kinds: Sequence[str] = START_KINDS,
    checkpoint: str | os.PathLike[str] | None = None,
    progress_bar: bool = False,
    num_threads: int | None = None,
    device: str | torch.device | None = None,
) -> Tensor:
    """Compute Fused Gromov–Wasserstein distances between all graphs of a list, or of two lists.

    >>> distances = pairwise(dataset, alpha=0.5)                    # (N, N): symmetric, 0 on the diagonal
    >>> distances = pairwise(test, train, alpha=0.5)                # (num_test, num_train)
    >>> distances = pairwise(dataset, pairs=[(0, 3), (2, 5)], alpha=0.5)
    >>> kernel = torch.exp(-distances)

    The value of a pair is that of :func:`fgw` with the smaller graph as template (for equal sizes, the graph with the
    smaller digest). It depends only on the two graphs, not on their order, other graphs or the number of threads. With
    ``canonical``, it does not depend on the numbering of nodes either, bit for bit. Equal graphs are at distance 0, and
    only one of them is compared with other graphs. Like those of :func:`fgw`, the values are local minima. They have no
    gradients.

    Each graph is prepared once, and nothing is padded. Memory usage is twice the size of the result, plus the graphs,
    plus at most about half a gigabyte for the current templates.

    Args:
        graphs: A list of PyTorch Geometric ``Data`` or of objects with its attributes ``x`` and ``edge_index``, and
            optionally ``edge_weight``, ``node_weights`` and ``structure`` (n² numbers, which replace the edges), as
            described in :class:`GraphBatch`; or a :class:`GraphBatch`.
        others: Graphs to compare with ``graphs``. If ``None``, ``graphs`` are compared with each other.
        alpha: Trade-off between features (0) and structure (1). At 0, structures are ignored and may be missing, and
            the values are squared 2-Wasserstein distances; nodes of a graph with equal features are merged first.
        pairs: Pairs to compare, ``(num_pairs, 2)``: an index in ``graphs`` and one in ``others`` (in ``graphs`` if
            ``others`` is ``None``). If ``None``, all pairs are compared.
        node_cost: Cost between features: ``"squared_euclidean"``, or with ``alpha=0`` also ``"euclidean"`` and
            ``"hamming"`` (the share of columns that differ). If nodes with equal labels in a column have equal labels
            in the column before it, too, as Weisfeiler–Lehman labels do, distances have a closed form and take about a
            microsecond each. Otherwise, each pair is solved.
        canonical: Whether to put nodes in canonical order first.
        max_iter: Maximum number of Frank–Wolfe iterations per start. This, ``tol``, ``n_starts``, ``start_kinds`` and
            ``num_threads`` are as in :func:`fgw`.
        tol: Gap, relative to the value, at which a start has converged.
        n_starts: Number of starts; the best result is kept.
        start_kinds: Kinds of starts.
        checkpoint: File that stores distances as they are computed. A call with the same graphs and options continues
            an interrupted call, or reads all distances; different graphs or options raise an error. In an existing
            folder, each problem has a separate file.
        progress_bar: Whether to show a progress bar.
        num_threads: Number of solver threads.
        device: Device of the solver, the CPU or a GPU. If ``None``, the device of the first graph's features. The CPU
            solves what the GPU kernels do not support: ``pairs``, other costs, and pairs of two graphs with more than
            512 nodes (128 with several starts). On a GPU, the last bits of a value may depend on the other graphs, and
            if ties decide between local minima, the value may differ from the CPU's.

    Returns:
        Distances in double precision on this device, ``(num_graphs, num_others)``; with ``pairs``, ``(num_pairs,)``.

    Raises:
        ValueError: If an input is invalid; the message names the argument and the graph.
    """
    options = PairOptions.checked(alpha, max_iter, tol, n_starts, start_kinds, node_cost)
    where = device_of(graphs) if device is None else checked_device(device)
    lists = read_lists(graphs, others, features_only=options.alpha == 0)
    found = ragged_set(lists, canonical=canonical)
    chosen = None if pairs is None else _checked_pairs(pairs, found)
    on_gpu = chosen is None and _kernels_can(options) and solves_on_gpu(where)
    solver = PairSolver(
        found,
        options,
        num_threads=num_threads,
        checkpoint=checkpoint,
        purpose=_purpose(chosen, on_gpu),
    )
    if chosen is not None:
        return torch.from_numpy(_listed(found, chosen, solver, progress_bar)).to(where)
    matrix = _Matrix(found, PairGrid.of(found))
    with progress(matrix.grid.num_pairs, progress_bar) as bar:
        rest = matrix.grid
        if on_gpu:
            blocks = PairBlocks(found, matrix.grid, options, where)
            for block, distances in solved_blocks(blocks, solver.journal):
                matrix.put_block(block, distances)
                bar.update(block.num_pairs)
            rest = blocks.rest()
        for some in rest.blocks():
            matrix.put(some, solver.distances(some))
            bar.update(len(some))
    return torch.from_numpy(matrix.of_lists()).to(where)


def checked_device(device: str | torch.device) -> torch.device:
    """Return the device, or raise ``ValueError`` if the solver cannot use it."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device: expected 'cpu' or 'cuda', got {device!r}") from None
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"device: expected 'cpu' or 'cuda', got {device!r}")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: {device} needs a GPU and a CUDA build of PyTorch")
    return found


def _purpose(pairs: np.ndarray | None, on_gpu: bool) -> bytes:
    """Describe which pairs are solved, and in which order."""
    if pairs is not None:
        return b"pairs" + hashlib.blake2b(pairs.tobytes()).digest()
    return b"all, on a GPU" if on_gpu else b"all"


def _kernels_can(options: PairOptions) -> bool:
    """Whether the GPU kernels support these options."""
    return options.node_cost == 0


class _Matrix:
    """The distances between the different graphs of a grid, by position in its rows and columns."""

    def __init__(self, graphs: RaggedSet, grid: PairGrid) -> None:
        self._graphs, self.grid = graphs, grid
        self._values = np.zeros((len(grid.rows), len(grid.columns)))
        # Position of each rank; -1 if absent.
        self._row, self._column = (np.full(len(graphs.parts), -1) for _ in grid)
        self._row[grid.rows], self._column[grid.columns] = np.arange(len(grid.rows)), np.arange(len(grid.columns))

    def put(self, pairs: np.ndarray, distances: np.ndarray) -> None:
        """Set the distances of pairs in both orders."""
        for first, second in (pairs.T, pairs.T[::-1]):
            inside = (self._row[first] >= 0) & (self._column[second] >= 0)
            self._values[self._row[first[inside]], self._column[second[inside]]] = distances[inside]

    def put_block(self, block: PairBlock, distances: np.ndarray) -> None:
        """Set the distances of a block, given for all its templates and graphs."""
        self._put_rectangle(block.templates, block.graphs, distances, block.is_wanted)
        self._put_rectangle(block.graphs, block.templates, distances.T, block.is_wanted.T)

    def _put_rectangle(self, first: np.ndarray, second: np.ndarray, values: np.ndarray, is_wanted: np.ndarray) -> None:
        rows, columns = self._row[first], self._column[second]
        inside = np.ix_(rows >= 0, columns >= 0)
        rows, columns = rows[rows >= 0], columns[columns >= 0]
        if not len(rows) or not len(columns):
            return
        if _is_range(rows) and _is_range(columns):
            to = self._values[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            if to.shape == values.shape:
                np.copyto(to, values, where=is_wanted)
            else:
                np.copyto(to, values[inside], where=is_wanted[inside])
        else:
            places = np.ix_(rows, columns)
            self._values[places] = np.where(is_wanted[inside], values[inside], self._values[places])

    def of_lists(self) -> np.ndarray:
        """Return the distances between the graphs of the lists."""
        return self._values[np.ix_(self._row[self._graphs.ranks[0]], self._column[self._graphs.ranks[-1]])]


def _is_range(numbers: np.ndarray) -> bool:
    """Whether ascending numbers are consecutive."""
    return bool(numbers[-1] - numbers[0] + 1 == len(numbers))


def _listed(graphs: RaggedSet, pairs: np.ndarray, solver: PairSolver, progress_bar: bool) -> np.ndarray:
    ranks = np.stack([graphs.ranks[0][pairs[:, 0]], graphs.ranks[-1][pairs[:, 1]]], axis=1)
    different, places = np.unique(np.sort(ranks, axis=1), axis=0, return_inverse=True)
    distances = np.zeros(len(different))
    (to_solve,) = np.nonzero(different[:, 0] != different[:, 1])
    with progress(len(to_solve), progress_bar) as bar:
        for first in range(0, len(to_solve), CHUNK):
            chunk = to_solve[first : first + CHUNK]
            distances[chunk] = solver.distances(different[chunk])
            bar.update(len(chunk))
    return distances[places.reshape(-1)]


def _checked_pairs(pairs: Any, graphs: RaggedSet) -> np.ndarray:
    numbers = np.asarray(pairs)
    if numbers.size == 0:
        numbers = np.empty((0, 2), dtype=np.int64)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        raise ValueError(f"pairs: expected integers of shape (num_pairs, 2), got {numbers.dtype} {numbers.shape}")
    for column, ranks in ((0, graphs.ranks[0]), (1, graphs.ranks[-1])):
        outside = np.flatnonzero((numbers[:, column] < 0) | (numbers[:, column] >= len(ranks)))
        if outside.size:
            pair = outside[0]
            raise ValueError(f"pairs: pair {pair} has graph {numbers[pair, column]}, but there are {len(ranks)} graphs")
    return numbers.astype(np.int64)


def progress(total: int, shown: bool) -> Any:
    """Return a progress bar over ``total`` pairs."""
    from tqdm import tqdm  # slow to import

    return tqdm(total=total, unit="pair", unit_scale=True, disable=not shown)

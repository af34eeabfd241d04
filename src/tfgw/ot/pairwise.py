"""Distances between all pairs of graphs, each pair once.

lists of graphs ─ ragged ─▶ different graphs by rank ─ pair_solver ─▶ chunks of pairs ─ native code ─▶ matrix
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.graph_lists import device_of, read_lists
from tfgw.ot.inputs import GraphBatch
from tfgw.ot.pair_blocks import PairBlocks
from tfgw.ot.pair_solver import CHUNK, NODE_COSTS, PairGrid, PairOptions, PairSolver
from tfgw.ot.problem import MAX_ITER, TOL
from tfgw.ot.ragged import RaggedSet, ragged_set
from tfgw.ot.starts import START_KINDS, UNIFORM


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
    """Fused Gromov–Wasserstein distances between all graphs of a list, or of two lists.

    >>> distances = pairwise(dataset, alpha=0.5)                    # (N, N): symmetric, 0 on the diagonal
    >>> distances = pairwise(test, train, alpha=0.5)                # (num_test, num_train)
    >>> distances = pairwise(dataset, pairs=[(0, 3), (2, 5)], alpha=0.5)
    >>> kernel = torch.exp(-distances)

    The value of a pair is that of :func:`fgw` with the smaller graph as template (of two equally large ones, the one
    whose digest is smaller), and depends on the two graphs alone: not on their order, nor on other graphs, nor on the
    number of threads. With ``canonical``, it does not depend on how their nodes are numbered either, not in the last
    bit. Equal graphs, which are at distance 0, are compared with others once. Values are local minima, as those of
    :func:`fgw` are. They have no gradients.

    Each graph is prepared once, and nothing is padded. Memory is twice that of the result, that of the graphs, and at
    most about half a gigabyte for those that are templates at the time.

    Args:
        graphs: A list of PyTorch Geometric ``Data``, or anything with its attributes ``x``, ``edge_index``, and where
            present ``edge_weight``, ``node_weights`` and ``structure`` (n² numbers, which take the place of edges), as
            :class:`GraphBatch` describes them; or a :class:`GraphBatch`.
        others: Graphs to compare them with; ``None``: with each other.
        alpha: Trade-off between features (0) and structure (1). At 0 structures are not looked at, and may be missing:
            these are squared 2-Wasserstein distances.
        pairs: Which pairs to compare, ``(num_pairs, 2)``: a number in ``graphs``, and one in ``others`` (if there are
            none, in ``graphs``); ``None``: all.
        node_cost: Cost between features. Besides ``"squared_euclidean"``, at ``alpha=0`` also ``"euclidean"``, and
            ``"hamming"``, the share of columns that differ.
        canonical: Whether to put nodes in canonical order first.
        max_iter: As in :func:`fgw`, like ``tol``, ``n_starts``, ``start_kinds`` and ``num_threads``.
        tol: Gap, relative to the value, at which a start has converged.
        n_starts: Number of starts, of which the best is kept.
        start_kinds: What the starts may be.
        checkpoint: File that keeps distances while they are computed. A call with the same graphs and options continues
            where one that was killed ended, or reads them all; one with others raises an error. A folder that exists
            has a file for each problem.
        progress_bar: Whether to show a progress bar.
        num_threads: Threads to solve with.
        device: Where to solve all pairs, the CPU or a GPU; ``None``: where the features of the first graph are. What
            the kernels of a GPU cannot do is solved on the CPU: ``pairs``, several starts, other costs, and pairs of
            two graphs with more than 128 nodes. On a GPU the last bits of a pair may depend on the other graphs, and
            where ties decide between local minima, the value may be another than on the CPU.

    Returns:
        Distances in double precision, on that device, ``(num_graphs, num_others)``; with ``pairs``, ``(num_pairs,)``.

    Raises:
        ValueError: If an input is invalid; the message names the argument and the graph.
    """
    options = PairOptions.checked(alpha, max_iter, tol, n_starts, start_kinds, node_cost)
    where = device_of(graphs) if device is None else checked_device(device)
    lists = read_lists(graphs, others, features_only=options.alpha == 0)
    found = ragged_set(lists, canonical=canonical)
    chosen = None if pairs is None else _checked_pairs(pairs, found)
    on_gpu = where.type != "cpu" and chosen is None and _kernels_can(options)
    solver = PairSolver(
        found,
        options,
        num_threads=num_threads,
        checkpoint=checkpoint,
        purpose=_purpose(chosen, on_gpu),
    )
    if chosen is not None:
        return torch.from_numpy(_listed(found, chosen, solver, progress_bar)).to(where)
    grid = PairGrid.of(found)
    blocks = _blocks_on(where, found, grid, options) if on_gpu else ((pairs, None) for pairs in grid.blocks())
    return torch.from_numpy(_matrix(found, grid, blocks, solver, progress_bar)).to(where)


def checked_device(device: str | torch.device) -> torch.device:
    """A device that can solve."""
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
    """Which pairs are solved, and in which order."""
    if pairs is not None:
        return b"pairs" + hashlib.blake2b(pairs.tobytes()).digest()
    return b"all, on a GPU" if on_gpu else b"all"


def _kernels_can(options: PairOptions) -> bool:
    """Whether these are options that the kernels of a GPU know."""
    return options.n_starts == 1 and bool(options.start_kinds & UNIFORM) and options.node_cost == 0


Blocks = Iterable[tuple[np.ndarray, Callable[[], np.ndarray] | None]]
"""Pairs, and what solves them if it is not the CPU."""


def _blocks_on(device: torch.device, graphs: RaggedSet, grid: PairGrid, options: PairOptions) -> Blocks:
    blocks = PairBlocks(graphs, grid, options, device)
    yield from blocks
    yield from ((pairs, None) for pairs in blocks.rest().blocks())


def _matrix(graphs: RaggedSet, grid: PairGrid, blocks: Blocks, solver: PairSolver, progress_bar: bool) -> np.ndarray:
    # Where each rank is in rows and columns, if it is.
    row, column = (np.full(len(graphs.parts), -1) for _ in grid)
    row[grid.rows], column[grid.columns] = np.arange(len(grid.rows)), np.arange(len(grid.columns))
    matrix = np.zeros((len(grid.rows), len(grid.columns)))
    with progress(grid.num_pairs, progress_bar) as bar:
        for pairs, solve in blocks:
            distances = solver.distances(pairs, solve)
            for first, second in (pairs.T, pairs.T[::-1]):
                inside = (row[first] >= 0) & (column[second] >= 0)
                matrix[row[first[inside]], column[second[inside]]] = distances[inside]
            bar.update(len(pairs))
    return matrix[np.ix_(row[graphs.ranks[0]], column[graphs.ranks[-1]])]


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
    """A progress bar over so many pairs."""
    from tqdm import tqdm  # takes a while to load

    return tqdm(total=total, unit="pair", unit_scale=True, disable=not shown)

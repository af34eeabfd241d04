"""Distances between all pairs of graphs. Each pair is solved once.

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
            ``"hamming"`` (the share of columns that differ).
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
            solves what the GPU kernels do not support: ``pairs``, several starts, other costs, and pairs of two graphs
            with more than 512 nodes. On a GPU, the last bits of a value may depend on the other graphs, and if ties
            decide between local minima, the value may differ from the CPU's.

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
    return options.n_starts == 1 and bool(options.start_kinds & UNIFORM) and options.node_cost == 0


Blocks = Iterable[tuple[np.ndarray, Callable[[], np.ndarray] | None]]
"""Pairs, and a function that solves them; ``None`` for the CPU."""


def _blocks_on(device: torch.device, graphs: RaggedSet, grid: PairGrid, options: PairOptions) -> Blocks:
    blocks = PairBlocks(graphs, grid, options, device)
    yield from blocks
    yield from ((pairs, None) for pairs in blocks.rest().blocks())


def _matrix(graphs: RaggedSet, grid: PairGrid, blocks: Blocks, solver: PairSolver, progress_bar: bool) -> np.ndarray:
    # Position of each rank in rows and columns; -1 if absent.
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
    """Return a progress bar over ``total`` pairs."""
    from tqdm import tqdm  # slow to import

    return tqdm(total=total, unit="pair", unit_scale=True, disable=not shown)

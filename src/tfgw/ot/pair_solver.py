"""Solve pairs of a ragged set on the CPU in chunks: the common part of :func:`pairwise` and :func:`nearest`."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch

from tfgw.ot.checks import check_accuracy, thread_count
from tfgw.ot.pair_journal import PairJournal
from tfgw.ot.ragged import RaggedSet
from tfgw.ot.starts import start_bits

CHUNK = 2**16
"""Approximate number of pairs that are listed at a time."""
ENTRIES = 2**26
"""Total cost matrix entries per call of native code. A call takes a few seconds, the most work that a crash loses."""

NODE_COSTS = ("squared_euclidean", "euclidean", "hamming")


class PairOptions(NamedTuple):
    """The solver options that affect distances."""

    alpha: float
    max_iter: int
    tol: float
    n_starts: int
    start_kinds: int
    node_cost: int = 0

    @classmethod
    def checked(
        cls,
        alpha: float,
        max_iter: int,
        tol: float,
        n_starts: int,
        start_kinds: Sequence[str],
        node_cost: str = NODE_COSTS[0],
    ) -> "PairOptions":
        """Check user arguments and convert them to options."""
        if not isinstance(alpha, Real) or isinstance(alpha, bool):
            raise ValueError(f"alpha: expected a number, got {type(alpha).__name__}")
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha: must lie in [0, 1], but is {alpha}")
        if node_cost not in NODE_COSTS:
            raise ValueError(f"node_cost: must be one of {', '.join(NODE_COSTS)}, got {node_cost!r}")
        if node_cost != NODE_COSTS[0] and alpha != 0:
            raise ValueError(f"node_cost: {node_cost!r} compares features only; give alpha=0")
        check_accuracy(max_iter, tol, n_starts)
        return cls(
            float(alpha), int(max_iter), float(tol), int(n_starts), start_bits(start_kinds), NODE_COSTS.index(node_cost)
        )


class PairGrid(NamedTuple):
    """All pairs of row and column graphs, by rank. A pair that occurs in both orders counts once."""

    rows: np.ndarray
    """Different ranks, ascending."""
    columns: np.ndarray
    """Different ranks, ascending."""

    @classmethod
    def of(cls, graphs: RaggedSet) -> "PairGrid":
        """Return the pairs of two lists, or of one list with itself."""
        return cls(np.unique(graphs.ranks[0]), np.unique(graphs.ranks[-1]))

    @property
    def num_pairs(self) -> int:
        """Number of pairs of different graphs."""
        common = len(np.intersect1d(self.rows, self.columns))
        return len(self.rows) * len(self.columns) - common * (common + 1) // 2

    def blocks(self, size: int = CHUNK) -> Iterator[np.ndarray]:
        """Yield all pairs of different graphs, ``(num_pairs, 2)``, in blocks of whole rows.

        Each block except for the last one has at least ``size`` pairs.
        """
        is_common = np.isin(self.columns, self.rows)
        block: list[np.ndarray] = []
        count = 0
        for row in self.rows:
            others = self.columns != row
            if not others.all():
                others &= ~is_common | (self.columns > row)
            columns = self.columns[others]
            block.append(np.stack([np.full_like(columns, row), columns], axis=1))
            count += len(columns)
            if count >= size:
                yield np.concatenate(block)
                block, count = [], 0
        if count:
            yield np.concatenate(block)


class PairSolver:
    """Solve pairs, given by rank in either order. The graph of lower rank, which is not larger, is the template.

    Args:
        graphs: The graphs.
        options: Solver options.
        num_threads: Number of threads; ``None`` follows :func:`torch.get_num_threads`.
        checkpoint: File that stores distances; see :class:`PairJournal`.
        purpose: Everything else that determines which pairs are solved, and in which order.
    """

    def __init__(
        self,
        graphs: RaggedSet,
        options: PairOptions,
        *,
        num_threads: int | None,
        checkpoint: str | os.PathLike[str] | None,
        purpose: bytes,
    ) -> None:
        content = hashlib.blake2b(repr(options).encode() + purpose + graphs.digest, digest_size=32)
        self._journal = PairJournal(checkpoint, content.digest())
        self._native = graphs.native(
            alpha=options.alpha,
            node_cost=options.node_cost,
            threads=thread_count(num_threads) or torch.get_num_threads(),
        )
        self._sizes = graphs.sizes
        self._options: dict[str, Any] = options._asdict()
        del self._options["alpha"], self._options["node_cost"]

    @property
    def journal(self) -> PairJournal:
        """The distances on disk."""
        return self._journal

    def distances(self, pairs: np.ndarray) -> np.ndarray:
        """Return the distance of each pair, ``(num_pairs,)``."""
        known = self._journal.take(len(pairs))
        if len(known) == len(pairs):
            return known
        parts = [known]
        for chunk in self._chunks(_ordered(pairs[len(known) :])):
            found = np.empty(len(chunk))
            self._native.distances(chunk, out=found, **self._options)
            self._journal.append(found)
            parts.append(found)
        return np.concatenate(parts)

    def details(self, pairs: np.ndarray) -> dict[str, np.ndarray]:
        """Return arrays about each pair by name, and the entries of the plans, pair after pair.

        Rows of a plan are nodes of the graph of higher rank, columns are nodes of the template.
        """
        chunks = self._chunks(_ordered(pairs))
        found = [self._native.details(chunk, **self._options) for chunk in chunks]
        return {name: np.concatenate([arrays[name] for arrays in found]) for name in found[0]}

    def _chunks(self, pairs: np.ndarray) -> list[np.ndarray]:
        entries = np.cumsum(self._sizes[pairs].prod(axis=1)) // ENTRIES
        return np.split(pairs, np.flatnonzero(np.diff(entries)) + 1)

    def lower_bounds(self, pairs: np.ndarray) -> np.ndarray:
        """Return Mémoli's third lower bound with features, which takes one linear problem per pair."""
        bounds = np.empty(len(pairs))
        self._native.lower_bounds(_ordered(pairs), out=bounds)
        return bounds

    def marginal_bounds(self, pairs: np.ndarray) -> np.ndarray:
        """Return a lower bound of :meth:`lower_bounds` that only takes sorting."""
        bounds = np.empty(len(pairs))
        self._native.marginal_bounds(_ordered(pairs), out=bounds)
        return bounds


def _ordered(pairs: np.ndarray) -> np.ndarray:
    return np.sort(pairs, axis=1)

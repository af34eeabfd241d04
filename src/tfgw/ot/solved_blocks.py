"""Solve blocks of pairs one after the other on a GPU, while the host prepares the next one, and store the distances."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tfgw.ot.pair_blocks import PairBlock
from tfgw.ot.pair_journal import PairJournal

AHEAD = 1
"""Number of blocks that are prepared while the GPU solves another."""


def solved_blocks(blocks: Iterable[PairBlock], journal: PairJournal) -> Iterator[tuple[PairBlock, np.ndarray]]:
    """Yield blocks and the distances of their templates and graphs. The next block is begun before one is finished.

    Blocks without pairs are left out. The distances of pairs that are not in a block are arbitrary.
    """
    begun: deque[_Begun] = deque()
    for block in blocks:
        if not block.num_pairs:
            continue
        known = journal.take(block.num_pairs)
        begun.append(_Begun(block, known, None if len(known) == block.num_pairs else block.begin()))
        if len(begun) > AHEAD:
            first = begun.popleft()
            yield first.block, first.finish(journal)
    for left in begun:
        yield left.block, left.finish(journal)


class _Begun(NamedTuple):
    block: PairBlock
    known: np.ndarray
    """Distances that were stored by an earlier call: those of the first pairs."""
    wait: Callable[[], np.ndarray] | None
    """Returns the distances of all templates and graphs; ``None`` if all pairs are known."""

    def finish(self, journal: PairJournal) -> np.ndarray:
        block, count = self.block, len(self.known)
        distances = np.zeros(block.is_wanted.shape) if self.wait is None else self.wait()
        if count or journal.is_kept:
            wanted = distances[block.is_wanted]
            wanted[:count] = self.known
            journal.append(wanted[count:])
            distances[block.is_wanted] = wanted
        return distances

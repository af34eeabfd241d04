"""Thread settings: one thread for the networks, all threads for the solver."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

import torch

from tfgw.ot.checks import thread_count


@contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch on one thread inside the block, because the rounding of its sums depends on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def networks_on_one_thread() -> Iterator[None]:
    """Run PyTorch on one thread inside the block, and the solver on as many threads as PyTorch had before.

    The tensors of the networks have a few thousand rows. More threads save little time on them, and cost much on a busy
    machine, where PyTorch's threads wait for each other (an epoch of MUTAG took 0.12 s on one thread and 2.7 s on two,
    with three other programs on the same two cores).
    """
    before = _solver.threads
    _solver.threads = before or torch.get_num_threads()
    try:
        with one_thread():
            yield
    finally:
        _solver.threads = before


def solver_threads(num_threads: int | None) -> int:
    """Return the number of solver threads of a layer; ``None`` means that of PyTorch outside
    :func:`networks_on_one_thread`."""
    return thread_count(_solver.threads if num_threads is None else num_threads)


class _Solver(local):
    """Thread-local rather than a ``ContextVar``, which :func:`torch.compile` cannot trace."""

    threads: int | None = None


_solver = _Solver()

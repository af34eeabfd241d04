"""Threads: one for the networks, all for the solver."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

import torch

from tfgw.ot.checks import thread_count


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block PyTorch computes on one thread, as the last digits of its sums depend on how many there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def networks_on_one_thread() -> Iterator[None]:
    """Inside the block PyTorch computes on one thread, and the solver of each layer on as many as PyTorch had before.

    The networks' tensors have a few thousand rows. More threads save little on them and cost much on a busy machine,
    where PyTorch's threads wait for each other (measured: an epoch of MUTAG in 0.12 s on one thread and in 2.7 s on
    two, with three other programs on the same two cores).
    """
    before = _solver.threads
    _solver.threads = before or torch.get_num_threads()
    try:
        with one_thread():
            yield
    finally:
        _solver.threads = before


def solver_threads(num_threads: int | None) -> int:
    """A layer's ``num_threads`` as a problem has it; ``None`` is what PyTorch computes, or computed, with."""
    return thread_count(_solver.threads if num_threads is None else num_threads)


class _Solver(local):
    """Thread-local rather than a ``ContextVar``, which :func:`torch.compile` cannot trace."""

    threads: int | None = None


_solver = _Solver()

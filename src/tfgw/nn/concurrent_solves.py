"""How many networks solve at the same time on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local


def concurrent_solves() -> int:
    """Return the number of solves that share the GPU with the next one, including it."""
    return _current.solves


@contextmanager
def solving_at_once(count: int) -> Iterator[None]:
    """Declare that ``count`` networks, called one after the other in this block, will run at the same time."""
    before = _current.solves
    _current.solves = count
    try:
        yield
    finally:
        _current.solves = before


class _Current(local):
    """Thread-local rather than a ``ContextVar``, which :func:`torch.compile` cannot trace."""

    solves: int = 1


_current = _Current()

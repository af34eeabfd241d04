"""An ordered parallel map over threads or processes, with a bounded number of items in flight."""

import multiprocessing
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2
"""Maximum number of items in flight per worker."""


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int, processes: bool
) -> Iterator[Result]:
    """Yield the results for all items in order, while further items are processed.

    Args:
        function: Function to apply. With ``processes``, the function, its items and results must support pickling.
        items: Input items, which are read ahead in a separate thread.
        workers: Number of threads or processes; 0 runs everything in the calling thread.
        processes: Whether to use processes, for functions that are mostly Python code.
    """
    if workers == 0:
        yield from map(function, items)
        return
    pending: deque[Future[Result]] = deque()
    executor = _executor(workers, processes)
    try:
        with closing(_read_ahead(items, depth=workers)) as waiting:
            for item in waiting:
                pending.append(executor.submit(function, item))
                if len(pending) > _AHEAD * workers:
                    yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _executor(workers: int, processes: bool) -> Executor:
    if not processes:
        return ThreadPoolExecutor(workers, thread_name_prefix="tfgw")
    # Do not fork, because PyTorch's threads do not survive it.
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker)


def _start_worker() -> None:
    """Ignore Ctrl-C, which the parent handles, and exit when the parent has ended, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _read_ahead(items: Iterable[Item], *, depth: int) -> Generator[Item, None, None]:
    """Yield the items, which another thread reads at most ``depth`` ahead."""
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[str, Any]) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(("item", item)):
                    return
            put(("end", None))
        except BaseException as error:  # raised in the calling thread
            put(("error", error))

    reader = threading.Thread(target=read, name="tfgw-reader", daemon=True)
    reader.start()
    try:
        while True:
            kind, value = waiting.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stopped.set()
        reader.join()

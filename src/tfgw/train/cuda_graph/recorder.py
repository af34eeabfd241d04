"""CUDA graphs from Python functions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import torch


class Recorder:
    """Records functions as CUDA graphs, which share memory: only one may run at a time. See :func:`recording`."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Call ``function``, then record a second call; returns the function that replays it."""
        function()  # libraries initialise themselves, which they cannot do while they are recorded
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        # In the default error mode, no other thread of the process could allocate GPU memory meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            function()
        return graph.replay


@contextmanager
def recording() -> Iterator[Recorder]:
    """Give a recorder; the block runs in the stream of all recordings, one thread at a time."""
    here, stream = torch.cuda.current_stream(), _recording_stream(torch.cuda.current_device())
    with _one_at_a_time:
        stream.wait_stream(here)
        try:
            with torch.cuda.stream(stream):
                yield Recorder()
        finally:
            here.wait_stream(stream)
            torch.cuda.empty_cache()  # memory of that stream which nothing else can use


@cache
def _recording_stream(device: int) -> torch.cuda.Stream:
    """One stream for good: cuBLAS allocates a workspace for each stream that it sees, and never frees it."""
    return torch.cuda.Stream(device)


_one_at_a_time = Lock()

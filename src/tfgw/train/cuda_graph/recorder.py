"""CUDA graphs from Python functions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import torch


class Recorder:
    """Records functions as CUDA graphs, which share memory, so only one may run at a time. See :func:`recording`."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Call ``function``, record a second call, and return a function that replays it."""
        function()  # lets libraries initialise, which is not allowed during recording
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        # In the default error mode, other threads could not allocate GPU memory during recording.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            function()
        return graph.replay


@contextmanager
def recording() -> Iterator[Recorder]:
    """Provide a recorder; the block runs in the recording stream, one thread at a time."""
    here, stream = torch.cuda.current_stream(), _recording_stream(torch.cuda.current_device())
    with _one_at_a_time:
        stream.wait_stream(here)
        try:
            with torch.cuda.stream(stream):
                yield Recorder()
        finally:
            here.wait_stream(stream)
            torch.cuda.empty_cache()  # frees memory that only the recording stream could reuse


@cache
def _recording_stream(device: int) -> torch.cuda.Stream:
    """Return the stream for recordings. It is created once, because cuBLAS never frees the workspace of a stream."""
    return torch.cuda.Stream(device)


_one_at_a_time = Lock()

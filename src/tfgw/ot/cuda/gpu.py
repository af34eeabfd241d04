"""A GPU as a solve sees it: what it is, how kernels are launched on it, and how they tell of invalid input."""

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from tfgw.ot.cuda import driver
from tfgw.ot.cuda.compile import kernel, load_cupy, shared_memory


class Check(threading.local):
    """One word of host memory per thread, which the kernels set to 1 where input is invalid.

    The event behind the kernels that check lets the host read it while the GPU is already solving.
    """

    def __init__(self) -> None:
        self._word = torch.zeros(1, dtype=torch.int32, pin_memory=True).numpy()
        self._event = driver.Event()
        self._address: int = self._word.ctypes.data
        self._pending = False

    def begin(self) -> int:
        """Clear the word; its address."""
        if self._pending:  # nobody waited for a solve that was given up: its kernels may still write
            self._event.wait()
        self._word[0] = 0
        return self._address

    def end(self, stream: int) -> None:
        """The last kernel that checks has been launched."""
        self._event.record(stream)
        self._pending = True

    def passed(self) -> bool:
        """Wait for those kernels; whether they found nothing."""
        self._event.wait()
        self._pending = False
        return int(self._word[0]) == 0


class Gpu:
    """One device."""

    def __init__(self, index: int) -> None:
        load_cupy()
        properties = torch.cuda.get_device_properties(index)
        self.index = index
        self.processors: int = properties.multi_processor_count
        self.memory: int = properties.total_memory
        self.capability: tuple[int, int] = (properties.major, properties.minor)
        self.shared = shared_memory(index)
        """Bytes of shared memory per multiprocessor."""
        with self.selected():
            self.check = Check()

    def launch(self, name: str, columns: int, blocks: int, *structs: bytes, shared: int = 0) -> None:
        """Run a kernel of the given size class on PyTorch's current stream, with so many bytes of shared memory."""
        found = kernel(name, columns, self.index)
        driver.launch(name, found.handle, blocks, found.threads, shared, self.stream, *structs)

    @property
    def stream(self) -> int:
        """PyTorch's current stream."""
        return torch._C._cuda_getCurrentRawStream(self.index)

    def capturing(self) -> bool:
        """Whether that stream is being captured, so that nothing can be waited for."""
        return torch.cuda.is_current_stream_capturing()

    def selected(self) -> AbstractContextManager[object]:
        """Make it the current device, without a cost where it is that already."""
        return nullcontext() if torch.cuda.current_device() == self.index else torch.cuda.device(self.index)


@cache
def gpu(index: int) -> Gpu:
    """The device of that number."""
    return Gpu(index)

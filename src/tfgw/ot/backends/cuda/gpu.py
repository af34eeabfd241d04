"""A GPU as a solve sees it: its properties, and the native host, which launches its kernels."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any

import torch

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.kernels import kernel, shared_memory


class Gpu:
    """One device."""

    def __init__(self, index: int) -> None:
        properties = torch.cuda.get_device_properties(index)
        self.index = index
        self.host = _core.Gpu(
            driver=driver.addresses(),
            processors=properties.multi_processor_count,
            shared=shared_memory(index),
            memory=properties.total_memory,
            generation=properties.major,
            kernel=partial(kernel, index),
            stream=partial(torch._C._cuda_getCurrentRawStream, index),
        )
        """What is done in C++ (host/gpu.hpp)."""

    def as_current(self) -> AbstractContextManager[Any]:
        """Make this the current device inside a ``with`` block; free if it is already."""
        # As there are tensors on it, CUDA is in use.
        return _ALREADY if torch._C._cuda_getDevice() == self.index else torch.cuda.device(self.index)


_ALREADY = nullcontext()


@cache
def gpu_at(index: int) -> Gpu:
    """The device with this index."""
    return Gpu(index)

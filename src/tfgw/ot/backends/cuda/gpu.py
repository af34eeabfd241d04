"""The properties of a GPU, and the native host code that launches its kernels."""

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
        """The host code in C++ (host/gpu.hpp)."""

    def as_current(self) -> AbstractContextManager[Any]:
        """Make this the current device inside a ``with`` block; costs nothing if it already is."""
        # CUDA is already initialised, because there are tensors on the device.
        return _ALREADY if torch._C._cuda_getDevice() == self.index else torch.cuda.device(self.index)


_ALREADY = nullcontext()


@cache
def gpu_at(index: int) -> Gpu:
    """Return the device with this index."""
    return Gpu(index)

"""A GPU as a solve sees it: what it is, and the host's native part, which describes problems to it and launches
kernels on it."""

import atexit
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from tfgw.ot import _core  # type: ignore[attr-defined]  # the C++ extension
from tfgw.ot.cuda import driver
from tfgw.ot.cuda.compile import kernel, load_cupy, shared_memory


class Gpu:
    """One device."""

    def __init__(self, index: int) -> None:
        load_cupy()
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

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call with this as the current device, without a cost where it is that already."""
        if torch._C._cuda_getDevice() == self.index:  # as there are tensors there, CUDA is in use
            return function(*arguments)
        with torch.cuda.device(self.index):
            return function(*arguments)


@cache
def gpu(index: int) -> Gpu:
    """The device of that number."""
    return Gpu(index)


atexit.register(gpu.cache_clear)  # whatever keeps this module alive at the end would keep devices, and be reported

"""Which tensors the kernels support, and how a kernel is launched."""

import ctypes
from functools import cache

import torch
from torch import Tensor

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.kernel_limits import OLDEST
from tfgw.ot.backends.cuda.kernels import layer_kernel, load_layers

NAMES = {torch.float64: "float64", torch.float32: "float32"}
"""Precisions that have kernels."""


def is_supported(x: Tensor) -> bool:
    """Whether there are kernels for the precision and the device of ``x``."""
    return x.is_cuda and x.dtype in NAMES and _has_kernels(x.device.index)


@cache
def _has_kernels(device: int) -> bool:
    """Whether the package has machine code for a GPU, or CuPy can compile it."""
    if torch.cuda.get_device_capability(device) < OLDEST:
        return False
    try:
        load_layers(device)  # all of them: a kernel should not be loaded while a step is recorded
    except ImportError:
        return False
    return True


def launch(name: str, blocks: int, threads: int, argument: ctypes.Structure, device: torch.device) -> None:
    """Queue a kernel on the current stream."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    with driver.current_context(device.index):
        driver.launch(layer_kernel(device.index, name), blocks, threads, stream, argument)

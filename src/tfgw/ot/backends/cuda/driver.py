"""The CUDA driver: addresses of the functions that the native host calls (host/driver.hpp), and loading of kernels."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_void_p
from functools import cache
from typing import Any

NAMES = (
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuStreamIsCapturing",
    "cuMemHostAlloc",
    "cuGetErrorName",
)

# Values of CUfunction_attribute.
_SHARED_SIZE_BYTES = 1
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
# Value of CUdevice_attribute.
_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


@cache
def library() -> Any:
    """Load the driver's library, or raise ``OSError`` if it is missing."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def addresses() -> dict[str, int]:
    """Return the address of each function by name."""
    return {name: ctypes.cast(getattr(library(), name), c_void_p).value or 0 for name in NAMES}


def version() -> tuple[int, int]:
    """Return the latest CUDA version that the driver supports."""
    number = c_int()
    _call("cuDriverGetVersion", byref(number))
    return number.value // 1000, number.value % 1000 // 10


@contextmanager
def current_context(device: int) -> Iterator[None]:
    """Use PyTorch's context of a device inside a ``with`` block, also in a thread that has not used it yet."""
    _call("cuCtxPushCurrent_v2", _primary_context(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", byref(c_void_p()))


@cache
def _primary_context(device: int) -> c_void_p:
    context = c_void_p()
    _call("cuDevicePrimaryCtxRetain", byref(context), _handle(device))
    return context


@cache
def _handle(device: int) -> c_int:
    found = c_int()
    _call("cuInit", 0)
    _call("cuDeviceGet", byref(found), device)
    return found


def shared_memory_of_block(device: int) -> int:
    """Return the maximum shared memory of a block in bytes."""
    found = c_int()
    _call("cuDeviceGetAttribute", byref(found), _MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, _handle(device))
    return found.value


def load_module(code: bytes) -> int:
    """Load machine code or PTX on the current device. It stays loaded until the process ends."""
    module = c_void_p()
    _call("cuModuleLoadData", byref(module), c_char_p(code))
    return module.value or 0


def function(module: int, name: str) -> int:
    """Return the handle of a kernel of a module."""
    found = c_void_p()
    _call("cuModuleGetFunction", byref(found), c_void_p(module), name.encode())
    return found.value or 0


def allow_shared_memory(kernel: int, most: int) -> None:
    """Allow blocks of a kernel to use at most ``most`` bytes of shared memory, static and dynamic together."""
    own = c_int()
    _call("cuFuncGetAttribute", byref(own), _SHARED_SIZE_BYTES, c_void_p(kernel))
    _call("cuFuncSetAttribute", c_void_p(kernel), _MAX_DYNAMIC_SHARED_SIZE_BYTES, most - own.value)


def launch(kernel: int, blocks: int, threads: int, stream: int, argument: ctypes.Structure) -> None:
    """Queue a kernel that takes one struct."""
    arguments = (c_void_p * 1)(ctypes.addressof(argument))
    _call("cuLaunchKernel", c_void_p(kernel), blocks, 1, 1, threads, 1, 1, 0, c_void_p(stream), arguments, None)


def _call(name: str, *arguments: Any) -> None:
    error = getattr(library(), name)(*arguments)
    if error:
        text = c_char_p()
        library().cuGetErrorName(error, byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'error').decode()} ({error})")

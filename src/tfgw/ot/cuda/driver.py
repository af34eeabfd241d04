"""The few calls of the CUDA driver that a solve makes, without a library in between: some microseconds each."""

import ctypes
import sys
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_uint, c_void_p
from functools import cache
from typing import Any

import torch

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuGetErrorName": (c_int, c_void_p),
}
_WITHOUT_TIMING = 2
_NO_CONTEXT = 201


def launch(name: str, kernel: int, blocks: int, threads: int, shared: int, stream: int, *structs: bytes) -> None:
    """Queue a kernel that takes structs, with ``shared`` bytes of memory per block; ``name`` is for an error."""
    arguments = (c_char_p * len(structs))(*structs)
    # Without a signature, which would take as long as the call: pointers are made here, and counts fit into an int.
    shape = (blocks, 1, 1, threads, 1, 1, shared)
    _call(name, _driver().cuLaunchKernel, c_void_p(kernel), *shape, c_void_p(stream), arguments, None)


class Event:
    """A point in a stream's queue."""

    def __init__(self) -> None:
        self._handle = c_void_p()
        _call("creation of an event", _driver().cuEventCreate, ctypes.byref(self._handle), _WITHOUT_TIMING)

    def record(self, stream: int) -> None:
        """Put it behind everything that is queued by now."""
        _call("record of an event", _driver().cuEventRecord, self._handle, stream)

    def wait(self) -> None:
        """Wait until the device has come to it. Errors of the kernels before it come up here."""
        _call("wait for the GPU", _driver().cuEventSynchronize, self._handle)


def _call(what: str, function: Callable[..., int], *arguments: object) -> None:
    error = function(*arguments)
    if error == _NO_CONTEXT:  # in a thread in which CUDA was not used before
        torch.cuda.mem_get_info()
        error = function(*arguments)
    if error:
        name = c_char_p()
        _driver().cuGetErrorName(error, ctypes.byref(name))
        raise RuntimeError(f"tfgw: {what} failed: {(name.value or b'error %d' % error).decode()}")


@cache
def _driver() -> ctypes.CDLL:
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    for name, arguments in _SIGNATURES.items():
        getattr(library, name).argtypes = arguments
    return library

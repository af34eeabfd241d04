"""Addresses of the CUDA driver functions that the host calls (host/driver.hpp)."""

import ctypes
import sys

NAMES = (
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuStreamIsCapturing",
    "cuMemHostAlloc",
    "cuGetErrorName",
)


def addresses() -> dict[str, int]:
    """The address of each function by its name."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in NAMES}

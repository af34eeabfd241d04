"""CUDA C++ to kernels: compiled at first use by CuPy (NVRTC), one module per size class, cached on disk."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

SOURCES = Path(__file__).parents[2] / "cuda"
PATIENCE = 2.0
"""Seconds after which a message announces the compilation; modules in CuPy's cache load faster than that."""
MISSING = "tensors on a GPU need CuPy, which is not installed: pip install 'tfgw[cuda]', or move the tensors to the CPU"


@cache
def kernel(device: int, name: str, columns: int) -> int:
    """The driver's handle of a kernel of a size class, loaded on a device."""
    with load_cupy().cuda.Device(device), _announced(columns):
        found = _module(columns, device).get_function(name)
        if name.startswith(("tfgw_start", "tfgw_solve")):
            found.max_dynamic_shared_size_bytes = shared_memory(device) - found.shared_size_bytes - 1024
        _loaded.append(found)
        return int(found.kernel.ptr)


@contextmanager
def _announced(columns: int) -> Iterator[None]:
    text = "tfgw: compiling the GPU kernels for templates of up to %d nodes, once: about half a minute"
    notice = Timer(PATIENCE, logging.getLogger("tfgw").warning, (text, columns))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


_loaded: list[Any] = []
"""CuPy's objects, with which the handles would end."""


@cache
def _module(columns: int, device: int) -> Any:
    # CuPy's cache knows the source it is given, not what that includes.
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.glob("*.cu*")))).hexdigest()[:16]
    return load_cupy().RawModule(
        code=(SOURCES / "kernels.cu").read_text(),
        options=("--std=c++17", f"-I{SOURCES}", f"-DTFGW_COLUMNS={columns}", f"-DTFGW_SOURCES=0x{digest}"),
    )


@cache
def shared_memory(device: int) -> int:
    """Bytes of shared memory per multiprocessor, including 1 KiB that each block reserves."""
    return int(load_cupy().cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]) + 1024


@cache
def load_cupy() -> Any:
    """Import CuPy, or raise ``ImportError`` that says how to install it."""
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(MISSING) from None
    return cupy

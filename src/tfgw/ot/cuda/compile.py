"""CUDA C++ to kernels: compiled at first use by CuPy (NVRTC), one module per size class, cached on disk."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tfgw.ot.cuda.layout import BLOCK_WARPS

SOURCES = Path(__file__).parent
THREADS = {
    "tfgw_index": 1024,
    "tfgw_prepare": 256,
    "tfgw_solve": 32 * BLOCK_WARPS,
    "tfgw_backward_nodes": 128,
    "tfgw_backward_edges": 128,
    "tfgw_backward_templates": 512,
    "tfgw_expand": 256,
    "tfgw_fold": 256,
}
MISSING = "tensors on a GPU need CuPy, which is not installed: pip install 'tfgw[cuda]', or move the tensors to the CPU"


class Kernel(NamedTuple):
    """A kernel as the driver launches it."""

    handle: int
    threads: int
    owner: Any
    """CuPy's object, with which the handle ends."""


@cache
def kernel(name: str, columns: int, device: int) -> Kernel:
    """The kernel of a size class, loaded on a device."""
    with load_cupy().cuda.Device(device):
        source = "shared_entries.cu" if name in ("tfgw_expand", "tfgw_fold") else "kernels.cu"
        owner = _module(source, columns, device).get_function(name)
        if name == "tfgw_solve":
            owner.max_dynamic_shared_size_bytes = shared_memory(device) - owner.shared_size_bytes - 1024
        return Kernel(owner.kernel.ptr, THREADS[name], owner)


@cache
def _module(source: str, columns: int, device: int) -> Any:
    # CuPy's cache knows the source it is given, not what that includes.
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.glob("*.cu*")))).hexdigest()[:16]
    return load_cupy().RawModule(
        code=(SOURCES / source).read_text(),
        options=("--std=c++17", f"-I{SOURCES}", f"-DTFGW_COLUMNS={columns}", f"-DTFGW_SOURCES=0x{digest}"),
    )


@cache
def shared_memory(device: int) -> int:
    """Bytes of shared memory that a multiprocessor has for its blocks, 1 KiB of each of them included."""
    return int(load_cupy().cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]) + 1024


@cache
def load_cupy() -> Any:
    """CuPy, or ``ImportError`` with what to do about it."""
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(MISSING) from None
    return cupy

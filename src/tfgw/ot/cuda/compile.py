"""CUDA C++ to kernels: compiled at first use by CuPy (NVRTC), one module per size class, cached on disk."""

import ctypes
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

SOURCES = Path(__file__).parent
THREADS = {
    "tfgw_index": 1024,
    "tfgw_prepare": 32,
    "tfgw_solve": 32,
    "tfgw_backward_nodes": 32,
    "tfgw_backward_edges": 128,
    "tfgw_backward_shares": 128,
    "tfgw_backward_total": 256,
}
MISSING = "tensors on a GPU need CuPy, which is not installed: pip install 'tfgw[cuda]', or move the tensors to the CPU"


def launch(name: str, columns: int, blocks: int, *structs: ctypes.Structure) -> None:
    """Run a kernel of the given size class on PyTorch's current stream."""
    cupy = load_cupy()
    device = torch.cuda.current_device()
    arguments = tuple(np.frombuffer(bytes(struct), dtype=f"V{ctypes.sizeof(struct)}")[0] for struct in structs)
    with cupy.cuda.Device(device), cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream, device):
        _kernel(name, columns, device)((blocks,), (THREADS[name],), arguments)


@cache
def _kernel(name: str, columns: int, device: int) -> Any:
    return _module(columns, device).get_function(name)


@cache
def _module(columns: int, device: int) -> Any:
    # CuPy's cache knows the source it is given, not what that includes.
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.glob("*.cu*")))).hexdigest()[:16]
    return load_cupy().RawModule(
        code=(SOURCES / "kernels.cu").read_text(),
        options=("--std=c++17", f"-I{SOURCES}", f"-DTFGW_COLUMNS={columns}", f"-DTFGW_SOURCES=0x{digest}"),
    )


@cache
def load_cupy() -> Any:
    """CuPy, or ``ImportError`` with what to do about it."""
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(MISSING) from None
    return cupy

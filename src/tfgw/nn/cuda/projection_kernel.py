"""Project parameters onto their constraint sets with one CUDA kernel for all of them (ot/cuda/projection.cuh)."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from tfgw.nn.constraints import Constraint
from tfgw.nn.cuda import launching
from tfgw.ot.tracing import is_eager

THREADS, ROWS, ENTRIES = 256, 8, 1024
"""Threads of a block, and the rows on a simplex or the entries of an interval that it projects."""
TENSORS = 80
"""Maximum number of tensors of a launch."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("values", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("size", "columns")),
        *((name, ctypes.c_double) for name in ("lower", "upper")),
        ("first_block", ctypes.c_int64),
    ]


class Projection(ctypes.Structure):
    """The argument of the kernel."""

    _fields_ = [("count", ctypes.c_int64), ("tensors", _Tensor * TENSORS)]


def is_supported(tensor: Tensor) -> bool:
    """Whether the kernel can project a tensor."""
    return is_eager() and launching.is_supported(tensor) and tensor.is_contiguous()


def project_(constraints: Sequence[Constraint]) -> None:
    """Project supported tensors of the same precision and device in place."""
    # Two layers may share a parameter, which must not be projected twice at the same time.
    different = list({one.tensor.data_ptr(): one for one in constraints if one.tensor.numel()}.values())
    for start in range(0, len(different), TENSORS):
        part = different[start : start + TENSORS]
        projection, blocks = Projection(len(part)), 0
        for place, (tensor, interval) in enumerate(part):
            columns, (lower, upper) = (0, interval) if interval else (tensor.shape[-1], (0.0, 0.0))
            size = tensor.numel()
            projection.tensors[place] = _Tensor(tensor.data_ptr(), size, columns, lower, upper, blocks)
            blocks += -(-size // (ROWS * columns if columns else ENTRIES))
        x = part[0].tensor
        torch.autograd.graph.increment_version([one.tensor for one in part])  # as an operation in place does
        launching.launch(f"tfgw_projection_{launching.NAMES[x.dtype]}", blocks, THREADS, projection, x.device)

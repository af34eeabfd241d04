"""Sums over neighbours in one CUDA kernel, which also computes their gradient (ot/cuda/neighbour_sums.cuh)."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfgw.nn.cuda import launching

THREADS = 256
"""Threads of a block; 32 of them share a node."""


class Neighbours(ctypes.Structure):
    """The argument of the kernel of sums over neighbours."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "first", "second", "out")),
        *((name, ctypes.c_int64) for name in ("rows", "edges", "channels", "x_stride")),
        ("own", ctypes.c_double),
    ]


class NeighbourSums(torch.autograd.Function):
    """own · x plus the sum over the neighbours of each node.

    Every edge must have its reverse, and edges are sorted by their first node. (In a padded batch, edges between nodes
    of padding need no reverse, because their gradients are 0.) The derivative then is the same function.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, edge_index: Tensor, own: float) -> Tensor:
        ctx.save_for_backward(edge_index)
        ctx.own = own
        return _neighbour_sums(x, edge_index, own)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (edge_index,) = ctx.saved_tensors
        return _neighbour_sums(grads[0], edge_index, ctx.own), None, None


def _neighbour_sums(x: Tensor, edge_index: Tensor, own: float) -> Tensor:
    x, edge_index = x if x.stride(1) == 1 else x.contiguous(), edge_index.contiguous()
    rows, channels = x.shape
    out = x.new_empty(rows, channels)
    addresses = (t.data_ptr() for t in (x, edge_index[0], edge_index[1], out))
    neighbours = Neighbours(*addresses, rows, edge_index.shape[1], channels, x.stride(0), own)
    blocks = -(-rows * 32 // THREADS)
    launching.launch(f"tfgw_neighbour_sums_{launching.NAMES[x.dtype]}", blocks, THREADS, neighbours, x.device)
    return out

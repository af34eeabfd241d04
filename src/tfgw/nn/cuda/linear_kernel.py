"""The gradients of a linear layer's weight and bias in one CUDA kernel (ot/cuda/linear.cuh)."""

import ctypes

from torch import Tensor

from tfgw.nn.cuda import launching

THREADS, TILE = 512, 8
"""Threads of a block, and rows and columns of its part of the result."""
MAX_WEIGHTS = 2**16
"""Number of weights up to which the kernel is faster than a matrix product of PyTorch."""


class Linear(ctypes.Structure):
    """The argument of the kernel of a linear layer."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "grad", "grad_weight", "grad_bias")),
        *((name, ctypes.c_int64) for name in ("rows", "inputs", "outputs", "x_stride", "grad_stride")),
    ]


def linear_gradients(x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of weight and bias of a linear layer with input ``x``, from the gradient of its output."""
    inputs, outputs = x.shape[1], grad.shape[1]
    if inputs * outputs > MAX_WEIGHTS:
        return grad.T @ x, grad.sum(0)
    x, grad = (t if t.stride(1) == 1 else t.contiguous() for t in (x, grad))
    weight, bias = x.new_empty(outputs, inputs), x.new_empty(outputs)
    addresses = (t.data_ptr() for t in (x, grad, weight, bias))
    layer = Linear(*addresses, len(x), inputs, outputs, x.stride(0), grad.stride(0))
    blocks = -(-(inputs + 1) // TILE) * -(-outputs // TILE)
    launching.launch(f"tfgw_linear_gradient_{launching.NAMES[x.dtype]}", blocks, THREADS, layer, x.device)
    return weight, bias

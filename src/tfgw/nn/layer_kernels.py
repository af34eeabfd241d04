"""CUDA kernels for the layers of networks on padded batches.

Batch normalisation has one kernel forward and one backward (ot/cuda/norm.cuh), the gradients of a linear layer's weight
and bias have one (ot/cuda/linear.cuh), and sums over neighbours have one, which is also that of their gradient
(ot/cuda/neighbour_sums.cuh).
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.kernels import layer_kernel, load_layers

NORM_THREADS, NORM_CHANNELS = 1024, 2
"""Threads and channels of a block of batch normalisation."""
LINEAR_THREADS, LINEAR_TILE = 512, 8
"""Threads of a block of the gradient of a linear layer, and rows and columns of its part of the result."""
NEIGHBOUR_THREADS = 256
"""Threads of a block of the sums over neighbours; 32 of them share a node."""
MAX_WEIGHTS = 2**16
"""Number of weights up to which the gradient of a linear layer is faster than a matrix product of PyTorch."""

NAMES = {torch.float64: "float64", torch.float32: "float32"}
"""Precisions that have kernels."""


def is_supported(x: Tensor) -> bool:
    """Whether there are kernels for the precision and the device of ``x``."""
    return x.is_cuda and x.dtype in NAMES and _has_kernels(x.device.index)


@cache
def _has_kernels(device: int) -> bool:
    """Whether the package has machine code for a GPU, or CuPy can compile it."""
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        load_layers(device)  # all of them: a kernel should not be loaded while a step is recorded
    except ImportError:
        return False
    return True


class Running(NamedTuple):
    """The running statistics that a training step updates."""

    mean: Tensor
    variance: Tensor
    batches: Tensor
    momentum: float


class Norm(ctypes.Structure):
    """The argument of the kernels."""

    _POINTERS = (
        *("x", "weight", "bias", "nodes", "out", "mean", "inverse", "running_mean", "running_variance", "batches"),
        *("grad", "grad_x", "grad_weight", "grad_bias"),
    )
    _fields_ = [
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int64) for name in ("rows", "channels", "grad_stride", "relu")),
        *((name, ctypes.c_double) for name in ("eps", "momentum")),
    ]


class FusedNorm(torch.autograd.Function):
    """Normalise with mean and variance of the nodes, which are the first rows, then apply a ReLU if ``relu``.

    Padding is set to the bias. Its gradient is 0, and the gradient with respect to it is ignored.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, nodes: Tensor, weight: Tensor, bias: Tensor, running: Running, eps: float, relu: bool
    ) -> Tensor:
        x = x.contiguous()
        out, statistics = torch.empty_like(x), x.new_empty(2, x.shape[1], dtype=torch.float64)
        ctx.save_for_backward(x, nodes, weight, out, statistics)
        ctx.relu = relu
        _launch(
            "tfgw_norm",
            x,
            {
                **{"nodes": nodes, "weight": weight, "bias": bias, "out": out},
                **{"mean": statistics[0], "inverse": statistics[1]},
                **{"running_mean": running.mean, "running_variance": running.variance, "batches": running.batches},
            },
            {"relu": relu, "eps": eps, "momentum": running.momentum},
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, nodes, weight, out, statistics = ctx.saved_tensors
        grad = grads[0] if grads[0].stride(1) == 1 else grads[0].contiguous()
        grad_x, (grad_weight, grad_bias) = torch.empty_like(x), x.new_empty(2, x.shape[1]).unbind()
        _launch(
            "tfgw_norm_backward",
            x,
            {
                **{"nodes": nodes, "weight": weight, "out": out, "mean": statistics[0], "inverse": statistics[1]},
                **{"grad": grad, "grad_x": grad_x, "grad_weight": grad_weight, "grad_bias": grad_bias},
            },
            {"relu": ctx.relu, "grad_stride": grad.stride(0)},
        )
        return grad_x, None, grad_weight, grad_bias, None, None, None


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
    blocks = -(-(inputs + 1) // LINEAR_TILE) * -(-outputs // LINEAR_TILE)
    launch(f"tfgw_linear_gradient_{NAMES[x.dtype]}", blocks, LINEAR_THREADS, layer, x.device)
    return weight, bias


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
    blocks = -(-rows * 32 // NEIGHBOUR_THREADS)
    launch(f"tfgw_neighbour_sums_{NAMES[x.dtype]}", blocks, NEIGHBOUR_THREADS, neighbours, x.device)
    return out


def _launch(name: str, x: Tensor, tensors: dict[str, Tensor], numbers: dict[str, float]) -> None:
    rows, channels = x.shape
    addresses = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    norm = Norm(x=x.data_ptr(), rows=rows, channels=channels, **addresses, **numbers)
    launch(f"{name}_{NAMES[x.dtype]}", -(-channels // NORM_CHANNELS), NORM_THREADS, norm, x.device)


def launch(name: str, blocks: int, threads: int, argument: ctypes.Structure, device: torch.device) -> None:
    """Queue a kernel on the current stream."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    with driver.current_context(device.index):
        driver.launch(layer_kernel(device.index, name), blocks, threads, stream, argument)

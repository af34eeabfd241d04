"""Batch normalisation of padded batches on a GPU: one CUDA kernel forward and one backward (ot/cuda/norm.cuh).

The sums over rows that the kernels need are also those of a linear layer's gradient.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.kernels import norm_kernel

THREADS, CHANNELS = 512, 4
"""Threads and channels of a block."""

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
        return bool(norm_kernel(device, "tfgw_norm_float64"))
    except ImportError:
        return False


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


def column_sums(x: Tensor) -> Tensor:
    """``x.sum(0)`` of a matrix with many rows and few columns, for which PyTorch takes several times as long."""
    x = x if x.stride(1) == 1 else x.contiguous()
    found = x.new_empty(x.shape[1])
    _launch("tfgw_column_sums", x, {"grad": x, "grad_bias": found}, {"grad_stride": x.stride(0)})
    return found


def _launch(name: str, x: Tensor, tensors: dict[str, Tensor], numbers: dict[str, float]) -> None:
    rows, channels = x.shape
    addresses = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    norm = Norm(x=x.data_ptr(), rows=rows, channels=channels, **addresses, **numbers)
    launch(f"{name}_{NAMES[x.dtype]}", -(-channels // CHANNELS), norm, x.device)


def launch(name: str, blocks: int, norm: Norm, device: torch.device) -> None:
    """Queue a kernel on the current stream."""
    stream = torch._C._cuda_getCurrentRawStream(device.index)
    with driver.current_context(device.index):
        driver.launch(norm_kernel(device.index, name), blocks, THREADS, stream, norm)

"""Batch normalisation in one CUDA kernel forward and one backward (ot/cuda/norm.cuh)."""

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfgw.nn.cuda import launching

THREADS, CHANNELS = 1024, 2
"""Threads and channels of a block."""


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


def _launch(name: str, x: Tensor, tensors: dict[str, Tensor], numbers: dict[str, float]) -> None:
    rows, channels = x.shape
    addresses = {key: tensor.data_ptr() for key, tensor in tensors.items()}
    norm = Norm(x=x.data_ptr(), rows=rows, channels=channels, **addresses, **numbers)
    launching.launch(f"{name}_{launching.NAMES[x.dtype]}", -(-channels // CHANNELS), THREADS, norm, x.device)

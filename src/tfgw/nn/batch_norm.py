"""Batch normalisation whose statistics are those of the whole batch, also when processes share it."""

from typing import Any, cast

import torch
from torch import Tensor, distributed, nn


class BatchNorm(nn.BatchNorm1d):
    """``torch.nn.BatchNorm1d`` over the nodes of all processes.

    In one process it is the original. In several it does what ``SyncBatchNorm`` does on GPUs, on any device,
    so that training does not depend on how many processes a batch is spread over.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and _is_shared()):
            return super().forward(x)
        count = _SumOverProcesses.apply(x.new_tensor(len(x)))
        mean = _SumOverProcesses.apply(x.sum(0)) / count
        variance = _SumOverProcesses.apply((x - mean).square().sum(0)) / count
        self._track(mean.detach(), variance.detach() * count / (count - 1).clamp_min(1))
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        for running, value in ((self.running_mean, mean), (self.running_var, variance)):
            assert running is not None
            running.lerp_(value.to(running), cast(float, self.momentum))
        cast(Tensor, self.num_batches_tracked).add_(1)


class _SumOverProcesses(torch.autograd.Function):
    """Each process's loss depends on every process's summand, so the gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous().clone()
        distributed.all_reduce(total)
        return total


def _is_shared() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1

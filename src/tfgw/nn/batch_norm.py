"""Batch normalisation over all nodes of a batch that may be padded or distributed over processes."""

from typing import Any, ClassVar, cast

import torch
from torch import Tensor, distributed, nn
from torch.backends import cudnn

from tfgw.nn.cuda import launching
from tfgw.nn.cuda.norm_kernel import FusedNorm, Running
from tfgw.nn.native_layers import RowStep, mapped_rows, row_steps, runs_natively
from tfgw.nn.padding import Rows, bessel_correction, current_padding
from tfgw.ot.tracing import is_eager

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class BatchNorm(nn.BatchNorm1d):
    """``torch.nn.BatchNorm1d`` over the nodes of all processes, ignoring padding (:mod:`tfgw.nn.padding`).

    In one process and without padding, it is ``BatchNorm1d``. In several processes, it works like ``SyncBatchNorm``, on
    any device, so that training does not depend on the number of processes.

    There is one difference. A constant channel (all channels are constant in regular graphs without features) is set
    to its bias, and its variance counts as 1. ``BatchNorm1d`` divides it by the root of ``eps``. Rounding errors, and
    in evaluation mode all differences from the running mean, then grow 316-fold in each layer.
    """

    supports_padding = True
    sets_constants_to_bias: ClassVar[bool] = True

    def row_steps(self) -> list[RowStep]:
        """Describe the layer in evaluation mode to native code (:mod:`tfgw.nn.native_layers`)."""
        parameters, buffers = self._parameters, self._buffers
        statistics = (buffers["running_mean"], buffers["running_var"])
        return [(*statistics, parameters["weight"], parameters["bias"], self.eps)]

    def forward(self, x: Tensor) -> Tensor:
        rows = self._padding()
        if rows is not None and self.has_kernel(x):
            return self.normalize_nodes(x, rows)
        if not self.training:
            mean, variance = self.running_mean, self.running_var
            return torch.batch_norm(x, self.weight, self.bias, mean, variance, False, 0.0, self.eps, cudnn.enabled)
        if rows is not None:
            normalised, mean, variance, constant = _NormOfNodes.apply(x, rows, self.weight, self.bias, self.eps)
            self._track(mean, torch.where(constant, 1, variance * rows.correction))
            return normalised
        if not _is_shared():
            return self._normalize(x) if self.sets_constants_to_bias and len(x) > 1 else super().forward(x)
        count = _SumOverProcesses.apply(x.new_tensor(len(x)))
        mean = _SumOverProcesses.apply(x.sum(0)) / count
        variance = _SumOverProcesses.apply((x - mean).square().sum(0)) / count
        inverse, corrected = (variance + self.eps).rsqrt(), variance.detach() * bessel_correction(count)
        if self.sets_constants_to_bias:
            constant = is_constant(variance, self.eps)
            inverse, corrected = torch.where(constant, 0, inverse), torch.where(constant, 1, corrected)
        self._track(mean.detach(), corrected)
        normalised = (x - mean) * inverse
        return normalised * self.weight + self.bias if self.affine else normalised

    def has_kernel(self, x: Tensor) -> bool:
        """Whether :meth:`normalize_nodes` supports these features and the current settings."""
        if not (self.training and self.affine and self.track_running_stats) or self.momentum is None:
            return False
        return x.dtype == self.weight.dtype and launching.is_supported(x)

    def normalize_nodes(self, x: Tensor, rows: Rows, *, relu: bool = False) -> Tensor:
        """Normalise a padded batch, and apply a ReLU if ``relu``, in a single kernel."""
        mean, variance, count = (cast(Tensor, self._buffers[name]) for name in _STATISTICS)
        running = Running(mean, variance, count, cast(float, self.momentum))
        return FusedNorm.apply(x, rows.number, self.weight, self.bias, running, self.eps, relu)

    def _padding(self) -> Rows | None:
        """Return which rows of the input are nodes, or ``None`` if all are."""
        return current_padding()

    def _normalize(self, x: Tensor) -> Tensor:
        """``BatchNorm1d`` in training mode, except for constant channels."""
        mean, variance, share = self.running_mean, cast(Tensor, self.running_var), self._count_batch()
        normalised, _, inverse = torch.native_batch_norm(
            x, self.weight, self.bias, mean, variance, True, share, self.eps
        )
        constant = is_constant(inverse.detach() ** -2 - self.eps, self.eps)
        if x.is_cpu and is_eager() and not constant.any():
            return normalised
        # `native_batch_norm` has added share * 0. Its backward pass saves this tensor but does not read it.
        variance.data.add_(constant.to(variance), alpha=share)
        return torch.where(constant, 0 if self.bias is None else self.bias.to(normalised), normalised)

    def _count_batch(self) -> float:
        """Count another batch, and return its share of the running statistics."""
        count = cast(Tensor, self.num_batches_tracked).add_(1)
        return 1 / int(count) if self.momentum is None else self.momentum  # None: cumulative mean over all batches

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        share = self._count_batch()
        for running, value in ((self.running_mean, mean), (self.running_var, variance)):
            assert running is not None
            running.lerp_(value.to(running), share)


class GraphVectorNorm(BatchNorm):
    """Batch normalisation of one vector per graph, without learned scales: each entry has mean 0 and variance 1.

    Batches are padded with nodes, never with graphs. A training batch of a single graph, which has no variance, is
    normalised with the running statistics. The variance of an entry that is constant in a batch is 0, as in
    ``BatchNorm1d``: the entry may vary in other batches.
    """

    supports_padding = True
    row_steps = BatchNorm.row_steps
    sets_constants_to_bias = False

    def __init__(self, channels: int) -> None:
        super().__init__(channels, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 1 or _is_shared():
            return super().forward(x)
        return nn.functional.batch_norm(x, self.running_mean, self.running_var, eps=self.eps)

    def _padding(self) -> Rows | None:
        return None


class NormSequential(nn.Sequential):
    """``nn.Sequential``, computed faster: in evaluation mode on the CPU by one call of native code
    (:mod:`tfgw.nn.native_layers`); in a padded batch on a GPU, a :class:`BatchNorm` and the ReLU after it are one
    kernel.
    """

    supports_padding = True

    def row_steps(self) -> list[RowStep] | None:
        """Describe the modules to native code."""
        return row_steps(self._modules.values())

    def forward(self, x: Tensor) -> Tensor:
        mapped = mapped_rows(x, row_steps(self._modules.values())) if runs_natively(self, x) else None
        return self._in_pytorch(x) if mapped is None else mapped

    def _in_pytorch(self, x: Tensor) -> Tensor:
        rows, modules = current_padding(), list(self)
        if rows is None:
            return nn.Sequential.forward(self, x)
        skips_relu = False
        for module, following in zip(modules, [*modules[1:], None], strict=True):
            if skips_relu:
                skips_relu = False
            # Types must match exactly, because a subclass may compute something else.
            elif type(module) is BatchNorm and type(following) is nn.ReLU and module.has_kernel(x):
                x, skips_relu = module.normalize_nodes(x, rows, relu=True), True
            else:
                x = module(x)
        return x


class _NormOfNodes(torch.autograd.Function):
    """Normalise with mean and variance of the nodes. Padding is set to the bias; if it were scaled like nodes of tiny
    variance, it would grow from layer to layer. :class:`tfgw.nn.cuda.norm_kernel.FusedNorm` computes the same on a GPU.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, rows: Rows, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        share = rows.share
        mean = (share * x).sum(0)  # a matrix product might use a lower precision
        centred = (x - mean) * rows.is_node
        variance = (share * centred.square()).sum(0)
        constant = is_constant(variance, eps)
        inverse = torch.where(constant, 0, (variance + eps).rsqrt())
        scale = weight * inverse
        ctx.save_for_backward(centred, share, inverse, scale)
        ctx.mark_non_differentiable(mean, variance, constant)
        return torch.addcmul(bias, centred, scale), mean, variance, constant

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad, (centred, share, inverse, scale) = grads[0], ctx.saved_tensors
        total, along = grad.sum(0), (grad * centred).sum(0) * inverse
        through_statistics = share * torch.addcmul(total, centred, along * inverse)
        return (grad - through_statistics) * scale, None, along, total, None


class _SumOverProcesses(torch.autograd.Function):
    """Sum over processes. The loss of each process depends on every summand, so the gradients are summed as well."""

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


def is_constant(variance: Tensor, eps: float) -> Tensor:
    """Return for each channel whether its variance is only that of rounding errors, because it vanishes beside ``eps``.

    The CUDA kernel has the same limit (``is_constant`` in ot/cuda/norm.cuh).
    """
    return variance <= 16 * torch.finfo(variance.dtype).eps * eps


def _is_shared() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1

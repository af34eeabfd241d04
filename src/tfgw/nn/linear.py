"""A linear layer whose result for a row does not depend on the other rows."""

from typing import Any

import torch
from torch import Tensor, constant_pad_nd, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from tfgw.nn.batch_norm import NormSequential
from tfgw.nn.cuda import launching
from tfgw.nn.cuda.linear_kernel import linear_gradients
from tfgw.nn.native_layers import RowStep, mapped_rows, runs_natively
from tfgw.nn.padding import current_padding
from tfgw.ot.tracing import is_eager

ROWS, COLUMNS, BYTES = 16, 8, 64


class Linear(nn.Linear):
    """``torch.nn.Linear`` whose result for a row in evaluation mode does not depend on the other rows, bit for bit.

    Matrix libraries sum in a different order at the end of a matrix, or if its rows are not aligned. The last digits of
    a graph's features would then depend on its position in the batch, and the solver, which breaks ties, might end in
    another local minimum. Native code computes all rows in the same way (:mod:`tfgw.nn.native_layers`). Where it cannot
    be used, zero padding to a round number of rows and columns prevents this. In training mode, where batches are
    random anyway, there is no padding.
    """

    supports_padding = True

    def row_steps(self) -> list[RowStep]:
        """Describe the layer to native code (:mod:`tfgw.nn.native_layers`)."""
        parameters = self._parameters
        return [(parameters["weight"], parameters["bias"])]

    def forward(self, x: Tensor) -> Tensor:
        if self.training and current_padding() is not None and self._has_kernel(x):
            return _LinearOfRows.apply(x, self.weight, self.bias)
        mapped = mapped_rows(x, self.row_steps()) if runs_natively(self, x) else None
        if mapped is not None:
            return mapped
        if self.training or x.dim() != 2 or _is_round(x):
            return linear(x, self.weight, self.bias)
        columns = -x.shape[1] % COLUMNS
        weight = constant_pad_nd(self.weight, (0, columns)) if columns else self.weight
        return linear(constant_pad_nd(x, (0, columns, 0, -x.shape[0] % ROWS)), weight, self.bias)[: x.shape[0]]

    def _has_kernel(self, x: Tensor) -> bool:
        return x.dim() == 2 and x.dtype == self.weight.dtype and self.bias is not None and launching.is_supported(x)


class _LinearOfRows(torch.autograd.Function):
    """``linear`` with a faster backward pass for many rows (:func:`~tfgw.nn.cuda.linear_kernel.linear_gradients`)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (x, weight) = grads, ctx.saved_tensors
        of_input = grad @ weight if ctx.needs_input_grad[0] else None
        return of_input, *linear_gradients(x, grad)


class Perceptron(NormSequential):
    """Modules that map each row independently; the input is padded once for all linear layers."""

    supports_padding = True
    row_steps = NormSequential.row_steps

    def _in_pytorch(self, x: Tensor) -> Tensor:
        if self.training or x.dim() != 2:
            return super()._in_pytorch(x)
        return super()._in_pytorch(constant_pad_nd(x, (0, 0, 0, -x.shape[0] % ROWS)))[: x.shape[0]]


def _is_round(x: Tensor) -> bool:
    """Whether the matrix needs no padding: it has a round size and is aligned like new memory."""
    if x.shape[0] % ROWS or x.shape[1] % COLUMNS:
        return False
    return is_eager() and x.is_contiguous() and x.data_ptr() % BYTES == 0

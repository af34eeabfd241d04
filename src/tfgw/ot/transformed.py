"""Solve under the transforms of :mod:`torch.func` and in forward mode, which operators do not support.

solve_transformed ─▶ tfgw::fgw
  ├ autograd: _Gradients ─▶ tfgw::fgw_backward
  └ forward mode: directional_derivative
"""

from collections.abc import Callable
from itertools import compress
from typing import Any

import torch
from torch import Tensor

from tfgw.ot.derivative import directional_derivative, raise_second_derivatives, refuse_second_derivatives
from tfgw.ot.operators import fgw_backward_op, fgw_op
from tfgw.ot.problem import DIFFERENTIABLE, NUM_OPERATOR_FIELDS, Problem, Results


def _one_by_one(
    function: Callable[..., tuple[Tensor, ...]], info: Any, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Implement :func:`torch.vmap`: call the function for each element and stack the results."""
    each = []
    for i in range(info.batch_size):
        elements = (a if dim is None else a.select(dim, i) for a, dim in zip(arguments, in_dims, strict=True))
        each.append(function(*elements))
    return tuple(torch.stack(results) for results in zip(*each, strict=True)), (0,) * len(each[0])


class _Transformed(torch.autograd.Function):
    """The operator with all derivatives that the transforms of :mod:`torch.func` and forward mode require."""

    @staticmethod
    def forward(*fields: Any) -> tuple[Tensor, ...]:
        return fgw_op(*fields, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.numbers = [None if isinstance(value, Tensor) else value for value in inputs]
        tensors = [value if isinstance(value, Tensor) else None for value in inputs]
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.save_for_forward(*tensors, *output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * NUM_OPERATOR_FIELDS
        problem, results = _saved(ctx)
        needed = dict(zip(Problem._fields, ctx.needs_input_grad, strict=False))
        needs = [needed[name] for name in DIFFERENTIABLE]
        grads = _Gradients.apply(grad, *problem[:NUM_OPERATOR_FIELDS], *results.for_backward, *needs)
        found = dict(zip(compress(DIFFERENTIABLE, needs), grads, strict=True))
        return tuple(found.get(name) for name in Problem._fields[:NUM_OPERATOR_FIELDS])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        problem, results = _saved(ctx)
        named = zip(Problem._fields[:NUM_OPERATOR_FIELDS], tangents, strict=True)
        along = {name: tangent for name, tangent in named if tangent is not None}
        change = directional_derivative(problem, results, along).to(problem.dtype)
        (refusing,) = refuse_second_derivatives([change], [*problem.differentiable, *along.values()])
        return (refusing, *(None for _ in results))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *fields: Any) -> tuple[Any, Any]:
        return _one_by_one(_Transformed.apply, info, in_dims, fields)


solve_transformed = torch.compiler.disable(_Transformed.apply)  # it cannot be traced


def _saved(ctx: Any) -> tuple[Problem, Results]:
    tensors, results = ctx.saved_tensors[:NUM_OPERATOR_FIELDS], ctx.saved_tensors[NUM_OPERATOR_FIELDS:]
    fields = (number if tensor is None else tensor for tensor, number in zip(tensors, ctx.numbers, strict=True))
    return Problem(*fields), Results._make(results)


class _Gradients(torch.autograd.Function):
    """The required gradients. They cannot be differentiated again."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        given, needs = arguments[: -len(DIFFERENTIABLE)], arguments[-len(DIFFERENTIABLE) :]
        return tuple(compress(fgw_backward_op(*given, list(needs)), needs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    backward = jvp = staticmethod(raise_second_derivatives)  # type: ignore[assignment]

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
        return _one_by_one(_Gradients.apply, info, in_dims, arguments)

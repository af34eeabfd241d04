"""How PyTorch sees a solve: an operator with a schema, shapes while tracing, and a gradient, once for all devices.

                 eager        ┌▶ backend.forward ─▶ native code
solve(problem) ───────────────┤   └ autograd: backend.backward, with what the forward prepared
                 traced, or   │
                 unsupported  ├▶ tfgw::fgw ─▶ backend.forward
                              │   └ autograd: tfgw::fgw_backward ─▶ backend.backward
                 torch.func,  │
                 forward mode └▶ _Transformed ─▶ tfgw::fgw
                                  ├ autograd: _Gradients ─▶ tfgw::fgw_backward
                                  └ forward mode: directional_derivative

An operator costs more than the solve of a small batch. Eager calls go past it. Operators have no forward mode: tangents
would silently be zero.
"""

import warnings
from collections.abc import Callable, Sequence
from itertools import compress
from types import ModuleType
from typing import Any, NoReturn, get_type_hints

import torch
from torch import Tensor

from tfgw.ot import backends
from tfgw.ot.backends import backend_of
from tfgw.ot.derivative import directional_derivative, raise_second_derivatives, refuse_second_derivatives
from tfgw.ot.problem import (
    DIFFERENTIABLE,
    GRADIENTS,
    NUM_OPERATOR_FIELDS,
    PLANS,
    RESULTS,
    Problem,
    Results,
    Solution,
)
from tfgw.ot.tracing import is_eager, is_transformed


def solve(problem: Problem, wanted: int) -> Solution:
    """Solve a checked problem, wherever its tensors are and whoever traces them; distances have gradients."""
    if not is_eager():
        return _solve_by_operator(problem, wanted)
    backend = backend_of(problem.x)
    if backend.unsupported_reason(problem) is not None:
        return _solve_by_operator(problem, wanted)
    needs_grad = problem.needs_grad()
    solution = backend.forward(problem, wanted | GRADIENTS if needs_grad else wanted)
    if solution is None:
        _raise_error_of(problem)
    if problem.x.dtype is not torch.float64:
        solution = _in_precision(solution, problem.dtype)
    if not needs_grad:
        return solution
    return Solution(_apply(solution, problem, backend, *problem.differentiable), *solution[1:])


def _in_precision(solution: Solution, dtype: torch.dtype) -> Solution:
    """The same with distances, costs and gaps in the precision of the input."""
    results = solution.results
    if results is not None:
        results = Results._make((*(values.to(dtype) for values in results[:3]), *results[3:]))
    return solution._replace(distances=solution.distances.to(dtype), results=results)


class _Differentiable(torch.autograd.Function):
    """The distances of a solution, with their gradients."""

    @staticmethod
    def forward(ctx: Any, solution: Solution, problem: Problem, backend: ModuleType, *_: Tensor | None) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.problem, ctx.backend, ctx.state, ctx.num_saved = problem, backend, solution.state, len(solution.saved)
        # The problem's tensors are saved so that a change of them in place is noticed.
        ctx.save_for_backward(*solution.saved, *problem.tensors)
        return solution.distances

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        (grad,), needs = grads, ctx.needs_input_grad[3:]
        if grad is None:
            return (None,) * (3 + len(needs))
        saved = ctx.saved_tensors[: ctx.num_saved]
        found = ctx.backend.backward(ctx.problem, grad, needs, state=ctx.state, saved=saved)
        if torch.is_grad_enabled():  # a graph of the gradients is wanted
            found = refuse_second_derivatives(found, [grad, *ctx.problem.differentiable])
        return (None, None, None, *found)


# Past what Function's own looks for in every argument: tensors that a transform of functorch left behind, which native
# code refuses.
_apply = super(torch.autograd.Function, _Differentiable).apply


def _raise_error_of(problem: Problem) -> NoReturn:
    """Raise what is wrong with a problem on a GPU, which only says that something is: the CPU finds the same."""
    backends.cpu.forward(_on_cpu(problem.unpadded()), 0)
    raise AssertionError("the GPU's checks found an error that the CPU's did not")


def _on_cpu(problem: Problem) -> Problem:
    return problem.dense().map_tensors(lambda tensor: tensor.detach().cpu())


def _solve_by_operator(problem: Problem, wanted: int) -> Solution:
    if problem.padded_nodes:
        raise ValueError("batch: padded nodes need the solver on a GPU, called eagerly, with a single start")
    with_plans = bool(wanted & PLANS) or problem.needs_grad()
    fields = problem.dense()[:NUM_OPERATOR_FIELDS]
    distances, *results = _transformed(*fields) if is_transformed() else fgw_op(*fields, with_plans)
    return Solution(distances, Results._make(results))


def _schema(last: str, returns: str, first: str = "") -> str:
    """Of an operator whose arguments are ``first``, the fields of a problem, and ``last``."""
    kinds = {Tensor: "Tensor", Tensor | None: "Tensor?", int: "int", int | None: "int", float: "float"}
    fields = list(get_type_hints(Problem).items())[:NUM_OPERATOR_FIELDS]
    return f"({first}{', '.join(f'{kinds[hint]} {name}' for name, hint in fields)}, {last}) -> {returns}"


def _problem(fields: Sequence[Any]) -> Problem:
    return Problem._make((*fields, None, False))


def _forward(*arguments: Any) -> tuple[Tensor, ...]:
    *fields, with_plans = arguments
    problem = _problem(fields)
    backend, device = backend_of(problem.x), problem.x.device
    wanted = RESULTS | PLANS if with_plans else RESULTS
    reason = backend.unsupported_reason(problem)
    if reason is not None:
        _warn_once(reason)
        problem, backend = _on_cpu(problem), backends.cpu
    solution = backend.forward(problem, wanted)
    if solution is None:
        _raise_error_of(problem)
    found = _in_precision(solution, problem.dtype)
    assert found.results is not None
    return (found.distances.to(device), *(_alone(tensor).to(device) for tensor in found.results))


def _alone(tensor: Tensor) -> Tensor:
    """The result of an operator, which may not share its memory with another."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


fgw_op = torch.library.custom_op(
    "tfgw::fgw",
    _forward,
    mutates_args=(),
    device_types=("cpu", "cuda"),
    schema=_schema("bool with_plans", "(" + ", ".join(["Tensor"] * (1 + len(Results._fields))) + ")"),
)


@fgw_op.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    *fields, with_plans = arguments
    problem = _problem(fields)
    x, graphs, (count, columns) = problem.x, problem.num_graphs, problem.template_weights.shape
    nodes = x.shape[0]
    of_pairs = [x.new_empty((graphs, count), dtype=problem.dtype) for _ in range(4)]
    counts = [x.new_empty((graphs, count), dtype=torch.int32) for _ in range(2)]
    plans: list[tuple[int, ...]] = [(nodes, count, columns), (nodes, count), (graphs, count, columns)]
    shapes = plans if with_plans else [(0,)] * 3
    return (*of_pairs, *counts, *(x.new_empty(shape, dtype=torch.float64) for shape in shapes))


def _backward(grad: Tensor, *arguments: Any) -> list[Tensor]:
    *fields, structure_costs, feature_costs, plans, graph_potentials, template_potentials, needs = arguments
    problem, saved = _problem(fields), (structure_costs, feature_costs, plans, graph_potentials, template_potentials)
    backend = backend_of(problem.x)
    if backend.unsupported_reason(problem) is None:
        found = backend.backward(problem, grad, needs, state=None, saved=saved)
    else:
        saved = tuple(tensor.cpu() for tensor in saved)
        found = backends.cpu.backward(_on_cpu(problem), grad.cpu(), needs, state=None, saved=saved)
    return [problem.x.new_empty(0) if g is None else g.to(problem.x.device) for g in found]


fgw_backward_op = torch.library.custom_op(
    "tfgw::fgw_backward",
    _backward,
    mutates_args=(),
    device_types=("cpu", "cuda"),
    schema=_schema(
        "Tensor structure_costs, Tensor feature_costs, Tensor plans, Tensor graph_potentials, "
        "Tensor template_potentials, bool[] needs",
        "Tensor[]",
        first="Tensor grad, ",
    ),
)


@fgw_backward_op.register_fake
def _(grad: Tensor, *arguments: Any) -> list[Tensor]:
    *fields, _, _, _, _, _, needs = arguments
    problem = _problem(fields)
    return [
        torch.empty_like(t, memory_format=torch.contiguous_format) if need and t is not None else grad.new_empty(0)
        for t, need in zip(problem.differentiable, needs, strict=True)
    ]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *fields, ctx.with_plans = inputs
    ctx.set_materialize_grads(False)  # no zeros in the shape of the plans
    ctx.numbers = [None if isinstance(value, Tensor) else value for value in fields]
    ctx.save_for_backward(
        *(value if isinstance(value, Tensor) else None for value in fields), *Results._make(output[1:]).for_backward
    )


def _backward_of_operator(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    nothing = dict.fromkeys((*Problem._fields[:NUM_OPERATOR_FIELDS], "with_plans"))
    if grad is None:
        return tuple(nothing.values())
    if not ctx.with_plans:
        raise RuntimeError("tfgw::fgw: gradients need the plans; call it with with_plans=True")
    tensors, saved = ctx.saved_tensors[:NUM_OPERATOR_FIELDS], ctx.saved_tensors[NUM_OPERATOR_FIELDS:]
    fields = [number if tensor is None else tensor for tensor, number in zip(tensors, ctx.numbers, strict=True)]
    needed = dict(zip(nothing, ctx.needs_input_grad, strict=True))
    needs = [needed[name] for name in DIFFERENTIABLE]
    grads = fgw_backward_op(grad, *fields, *saved, needs)
    found = {name: g for name, g, need in zip(DIFFERENTIABLE, grads, needs, strict=True) if need}
    return tuple((nothing | found).values())


fgw_op.register_autograd(_backward_of_operator, setup_context=_setup_context)
fgw_backward_op.register_autograd(raise_second_derivatives)


def _one_by_one(
    function: Callable[..., tuple[Tensor, ...]], info: Any, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]
) -> tuple[Any, Any]:
    """How :func:`torch.vmap` calls a function: for each element, with the results stacked."""
    each = []
    for i in range(info.batch_size):
        elements = (a if dim is None else a.select(dim, i) for a, dim in zip(arguments, in_dims, strict=True))
        each.append(function(*elements))
    return tuple(torch.stack(results) for results in zip(*each, strict=True)), (0,) * len(each[0])


class _Transformed(torch.autograd.Function):
    """The operator with all derivatives that the transforms of :mod:`torch.func` and forward mode ask for."""

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


_transformed = torch.compiler.disable(_Transformed.apply)  # it cannot be traced


def _saved(ctx: Any) -> tuple[Problem, Results]:
    tensors, results = ctx.saved_tensors[:NUM_OPERATOR_FIELDS], ctx.saved_tensors[NUM_OPERATOR_FIELDS:]
    fields = (number if tensor is None else tensor for tensor, number in zip(tensors, ctx.numbers, strict=True))
    return _problem(tuple(fields)), Results._make(results)


class _Gradients(torch.autograd.Function):
    """The gradients that are needed, which cannot be differentiated again."""

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


def _warn_once(reason: str) -> None:
    """Say why the CPU solves instead, the first time that each reason comes up."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()

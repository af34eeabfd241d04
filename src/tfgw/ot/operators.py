"""The solver as a PyTorch operator for all devices: its schema, shapes for tracing, and gradient."""

from typing import Any, get_type_hints

import torch
from torch import Tensor

from tfgw.ot import backends
from tfgw.ot.cpu_fallback import on_cpu, raise_input_error, warn_once
from tfgw.ot.derivative import raise_second_derivatives
from tfgw.ot.problem import DIFFERENTIABLE, NUM_OPERATOR_FIELDS, PLANS, RESULTS, Problem, Results, SolvedPairs


def _schema(last: str, returns: str, first: str = "") -> str:
    """Return the schema of an operator with the arguments ``first``, the fields of a problem, and ``last``."""
    kinds = {Tensor: "Tensor", Tensor | None: "Tensor?", int: "int", int | None: "int", float: "float"}
    fields = list(get_type_hints(Problem).items())[:NUM_OPERATOR_FIELDS]
    return f"({first}{', '.join(f'{kinds[hint]} {name}' for name, hint in fields)}, {last}) -> {returns}"


def _forward(*arguments: Any) -> tuple[Tensor, ...]:
    *fields, with_plans = arguments
    problem = Problem(*fields)
    backend, device = backends.backend_of(problem.x), problem.x.device
    wanted = RESULTS | PLANS if with_plans else RESULTS
    reason = backend.unsupported_reason(problem)
    if reason is not None:
        warn_once(reason)
        problem, backend = on_cpu(problem), backends.cpu
    solution = backend.forward(problem, wanted)
    if solution is None:
        raise_input_error(problem)
    found = solution.in_precision(problem.dtype)
    assert found.results is not None
    return (found.distances.to(device), *(_alone(tensor).to(device) for tensor in found.results))


def _alone(tensor: Tensor) -> Tensor:
    """Return a tensor that owns its memory, because the results of an operator must not share memory."""
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
    problem = Problem(*fields)
    x, graphs, (count, columns) = problem.x, problem.num_graphs, problem.template_weights.shape
    nodes = x.shape[0]
    of_pairs = [x.new_empty((graphs, count), dtype=problem.dtype) for _ in range(4)]
    counts = [x.new_empty((graphs, count), dtype=torch.int32) for _ in range(2)]
    plans: list[tuple[int, ...]] = [(nodes, count, columns), (nodes, count), (graphs, count, columns)]
    shapes = plans if with_plans else [(0,)] * 3
    return (*of_pairs, *counts, *(x.new_empty(shape, dtype=torch.float64) for shape in shapes))


def _backward(grad: Tensor, *arguments: Any) -> list[Tensor]:
    *given, needs = arguments
    problem, solved = Problem(*given[:NUM_OPERATOR_FIELDS]), SolvedPairs(*given[NUM_OPERATOR_FIELDS:])
    backend = backends.backend_of(problem.x)
    if backend.unsupported_reason(problem) is None:
        found = backend.backward_of_solved(problem, grad, needs, solved)
    else:
        solved = SolvedPairs._make(tensor.cpu() for tensor in solved)
        found = backends.cpu.backward_of_solved(on_cpu(problem), grad.cpu(), needs, solved)
    return [problem.x.new_empty(0) if g is None else g.to(problem.x.device) for g in found]


fgw_backward_op = torch.library.custom_op(
    "tfgw::fgw_backward",
    _backward,
    mutates_args=(),
    device_types=("cpu", "cuda"),
    schema=_schema(
        ", ".join([*(f"Tensor {name}" for name in SolvedPairs._fields), "bool[] needs"]),
        "Tensor[]",
        first="Tensor grad, ",
    ),
)


@fgw_backward_op.register_fake
def _(grad: Tensor, *arguments: Any) -> list[Tensor]:
    problem, needs = Problem(*arguments[:NUM_OPERATOR_FIELDS]), arguments[-1]
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

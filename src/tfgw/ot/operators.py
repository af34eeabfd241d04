"""The solver as a PyTorch operator for all devices: its schema, shapes for tracing, and gradient.

                 eager        ┌▶ backend.forward ─▶ native code
solve(problem) ───────────────┤   └ autograd: backend.backward, with what the forward prepared
                 traced, or   │
                 unsupported  ├▶ tfgw::fgw ─▶ backend.forward
                              │   └ autograd: tfgw::fgw_backward ─▶ backend.backward
                 torch.func,  │
                 forward mode └▶ transformed.solve_transformed ─▶ tfgw::fgw

An operator takes longer than the solve of a small batch, so eager calls bypass it. Operators do not support forward
mode: tangents would silently be zero.
"""

import warnings
from types import ModuleType
from typing import Any, NoReturn, get_type_hints

import torch
from torch import Tensor

from tfgw.ot import backends
from tfgw.ot.backends import backend_of
from tfgw.ot.derivative import raise_second_derivatives, refuse_second_derivatives
from tfgw.ot.problem import (
    DIAGNOSIS,
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
    """Solve a checked problem on the device of its tensors, eagerly or traced. The distances are differentiable."""
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


def solve_and_assess(problem: Problem) -> Solution:
    """Solve a checked problem, with results in float64 and a complete diagnosis, both on the CPU."""
    backend = backend_of(problem.x)
    reason = backend.unsupported_reason(problem)
    if reason is not None:
        warn_once(reason)
    on_cpu = _on_cpu(problem)
    if backend is backends.cpu or reason is not None:
        return backends.cpu.forward(on_cpu, RESULTS | DIAGNOSIS)
    solution = backend.forward(problem.map_tensors(Tensor.detach), RESULTS | PLANS | DIAGNOSIS)
    if solution is None:
        _raise_error_of(problem)
    assert solution.results is not None
    assert solution.diagnosis is not None
    distances, results = solution.distances.cpu(), Results._make(tensor.cpu() for tensor in solution.results)
    assessed = backends.cpu.assess(on_cpu, results.plans, distances, results.status)
    return Solution(distances, results, (solution.diagnosis[0].cpu(), *assessed))


def _in_precision(solution: Solution, dtype: torch.dtype) -> Solution:
    """Convert distances, costs and gaps to the precision of the input."""
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
        # The problem's tensors are saved so that autograd detects in-place changes.
        ctx.save_for_backward(*solution.saved, *problem.tensors)
        return solution.distances

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        (grad,), needs = grads, ctx.needs_input_grad[3:]
        if grad is None:
            return (None,) * (3 + len(needs))
        saved = ctx.saved_tensors[: ctx.num_saved]
        found = ctx.backend.backward(ctx.problem, grad, needs, state=ctx.state, saved=saved)
        if torch.is_grad_enabled():  # create_graph=True
            found = refuse_second_derivatives(found, [grad, *ctx.problem.differentiable])
        return (None, None, None, *found)


# Bypasses Function.apply's search for leftovers of functorch transforms in every argument; native code rejects them.
_apply = super(torch.autograd.Function, _Differentiable).apply


def _raise_error_of(problem: Problem) -> NoReturn:
    """Raise the CPU's error for a problem that the GPU found invalid; the GPU does not report the reason."""
    backends.cpu.forward(_on_cpu(problem.unpadded()), 0)
    raise AssertionError("the GPU's checks found an error that the CPU's did not")


def _on_cpu(problem: Problem) -> Problem:
    return problem.dense().map_tensors(lambda tensor: tensor.detach().cpu())


def _solve_by_operator(problem: Problem, wanted: int) -> Solution:
    if problem.padded_nodes:
        raise ValueError("batch: padded nodes need the solver on a GPU, called eagerly")
    with_plans = bool(wanted & PLANS) or problem.needs_grad()
    fields = problem.dense()[:NUM_OPERATOR_FIELDS]
    if is_transformed():
        # Imported here because it loads PyTorch's compiler, which takes as long as the rest of PyTorch.
        from tfgw.ot.transformed import solve_transformed

        distances, *results = solve_transformed(*fields)
    else:
        distances, *results = fgw_op(*fields, with_plans)
    return Solution(distances, Results._make(results))


def _schema(last: str, returns: str, first: str = "") -> str:
    """Return the schema of an operator with the arguments ``first``, the fields of a problem, and ``last``."""
    kinds = {Tensor: "Tensor", Tensor | None: "Tensor?", int: "int", int | None: "int", float: "float"}
    fields = list(get_type_hints(Problem).items())[:NUM_OPERATOR_FIELDS]
    return f"({first}{', '.join(f'{kinds[hint]} {name}' for name, hint in fields)}, {last}) -> {returns}"


def _forward(*arguments: Any) -> tuple[Tensor, ...]:
    *fields, with_plans = arguments
    problem = Problem(*fields)
    backend, device = backend_of(problem.x), problem.x.device
    wanted = RESULTS | PLANS if with_plans else RESULTS
    reason = backend.unsupported_reason(problem)
    if reason is not None:
        warn_once(reason)
        problem, backend = _on_cpu(problem), backends.cpu
    solution = backend.forward(problem, wanted)
    if solution is None:
        _raise_error_of(problem)
    found = _in_precision(solution, problem.dtype)
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
    *fields, structure_costs, feature_costs, plans, graph_potentials, template_potentials, needs = arguments
    problem = Problem(*fields)
    saved = (structure_costs, feature_costs, plans, graph_potentials, template_potentials)
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
    problem = Problem(*fields)
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


def warn_once(reason: str) -> None:
    """Warn once per reason that the CPU solves instead."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()

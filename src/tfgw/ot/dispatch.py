"""Solve a problem on the device of its tensors: eagerly, while traced, or under a transform.

                 eager        ┌▶ backend.forward ─▶ native code
solve(problem) ───────────────┤   └ autograd: backend.backward, with what the forward prepared
                 traced, or   │
                 unsupported  ├▶ operators: tfgw::fgw ─▶ backend.forward
                              │   └ autograd: tfgw::fgw_backward ─▶ backend.backward_of_solved
                 torch.func,  │
                 forward mode └▶ transformed.solve_transformed ─▶ tfgw::fgw

An operator takes longer than the solve of a small batch, so eager calls bypass it. Operators do not support forward
mode: tangents would silently be zero.
"""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tfgw.ot import backends
from tfgw.ot.cpu_fallback import on_cpu, raise_input_error, warn_once
from tfgw.ot.derivative import refuse_second_derivatives
from tfgw.ot.operators import fgw_op
from tfgw.ot.problem import DIAGNOSIS, GRADIENTS, NUM_OPERATOR_FIELDS, PLANS, RESULTS, Problem, Results, Solution
from tfgw.ot.tracing import is_eager, is_transformed


def solve(problem: Problem, wanted: int) -> Solution:
    """Solve a checked problem on the device of its tensors, eagerly or traced. The distances are differentiable."""
    if not is_eager():
        return _solve_by_operator(problem, wanted)
    backend = backends.backend_of(problem.x)
    if backend.unsupported_reason(problem) is not None:
        return _solve_by_operator(problem, wanted)
    needs_grad = problem.needs_grad()
    solution = backend.forward(problem, wanted | GRADIENTS if needs_grad else wanted)
    if solution is None:
        raise_input_error(problem)
    if problem.x.dtype is not torch.float64:
        solution = solution.in_precision(problem.dtype)
    if not needs_grad:
        return solution
    return Solution(_apply(solution, problem, backend, *problem.differentiable), *solution[1:])


def solve_and_assess(problem: Problem) -> Solution:
    """Solve a checked problem, with results in float64 and a complete diagnosis, both on the CPU."""
    backend = backends.backend_of(problem.x)
    reason = backend.unsupported_reason(problem)
    if reason is not None:
        warn_once(reason)
    copy = on_cpu(problem)
    if backend is backends.cpu or reason is not None:
        return backends.cpu.forward(copy, RESULTS | DIAGNOSIS)
    solution = backend.forward(problem.map_tensors(Tensor.detach), RESULTS | PLANS | DIAGNOSIS)
    if solution is None:
        raise_input_error(problem)
    assert solution.results is not None
    assert solution.diagnosis is not None
    distances, results = solution.distances.cpu(), Results._make(tensor.cpu() for tensor in solution.results)
    assessed = backends.cpu.assess(copy, results.plans, distances, results.status)
    return Solution(distances, results, (solution.diagnosis[0].cpu(), *assessed))


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

"""Solve problems on the CPU with the C++ core (ot/cpp through ot/bindings/cpu.cpp)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.problem import Problem, Results, Solution, SolvedPairs


def unsupported_reason(problem: Problem) -> str | None:
    """Return why the core cannot solve a problem, or ``None`` if it can."""
    return "padded batches are solved on a GPU only" if problem.padded_nodes else None


def forward(problem: Problem, wanted: int) -> Solution:
    """Solve all pairs in float64; ``wanted`` are flags for what to return in addition to the distances."""
    distances, results, diagnosis, state = _core.solve(
        problem, wanted, problem.weight_tolerance, problem.num_threads or torch.get_num_threads()
    )
    return Solution(distances, None if results is None else Results._make(results), diagnosis, state)


def assess(problem: Problem, plans: Tensor, distances: Tensor, status: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower bound of each pair, and whether its plan is a local minimum, for a solution of another backend.

    All tensors are on the CPU; distances are in float64.
    """
    threads = problem.num_threads or torch.get_num_threads()
    bounds, minima = _core.assess(problem, plans, distances, status.long(), threads)
    return bounds, minima.view_as(status)


def backward(
    problem: Problem, grad: Tensor, needs: Sequence[bool], *, state: Any, saved: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """Return the gradients of ``sum(grad * distances)``, in the order of ``problem.differentiable``.

    The plan is held fixed (envelope theorem). ``state`` and ``saved`` are those of the solution.
    """
    return state.backward(grad, needs, problem.num_threads or torch.get_num_threads())


def backward_of_solved(
    problem: Problem, grad: Tensor, needs: Sequence[bool], solved: SolvedPairs
) -> list[Tensor | None]:
    """Return the same gradients as :func:`backward`, for given results."""
    return _core.backward_of_solved(problem, grad, needs, solved, problem.num_threads or torch.get_num_threads())

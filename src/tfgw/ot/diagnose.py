"""Diagnose the quality of distances: local minima, the spread over starts and a certified lower bound."""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict, Unpack

import torch
from torch import Tensor

from tfgw.ot.checks import problem_of, thread_count
from tfgw.ot.dispatch import solve_and_assess
from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.starts import START_KINDS, start_bits


class Accuracy(TypedDict, total=False):
    """Stopping criteria of a start; see :func:`tfgw.ot.fgw`."""

    max_iter: int
    tol: float


class Diagnosis(NamedTuple):
    """Quality of the distances between B graphs and K templates. All tensors are ``(B, K)`` and on the CPU.

    Attributes:
        distances: The lowest value over all starts.
        lower_bounds: Lower bound over all couplings. The optimum lies between this bound and ``distances``.
        spreads: Difference between the highest and the lowest value over all starts; 0 for a single start.
        gaps: Frank–Wolfe gap at the plan. No coupling has a linearised cost that is lower by more than the gap.
        local_minima: Whether no descent is known: the gap is within the tolerance, and neither the vertex that
            minimises the linearisation nor any exchange of two entries of the plan between linked nodes is lower.
        status: :class:`tfgw.ot.Status` of each pair.
    """

    distances: Tensor
    lower_bounds: Tensor
    spreads: Tensor
    gaps: Tensor
    local_minima: Tensor
    status: Tensor

    @property
    def worst_excess(self) -> Tensor:
        """Maximum excess of a distance over the optimum, relative to the distance; 0 at the optimum."""
        return (self.distances - self.lower_bounds) / self.distances.clamp_min(torch.finfo(torch.float64).tiny)


def diagnose(
    graphs: GraphBatch,
    templates: Templates,
    alpha: float | Tensor,
    *,
    n_starts: int = 8,
    start_kinds: Sequence[str] = START_KINDS,
    initial_plans: Tensor | None = None,
    num_threads: int | None = None,
    **options: Unpack[Accuracy],
) -> Diagnosis:
    """Solve like :func:`tfgw.ot.fgw` and assess the quality of the result.

    The lower bound is Mémoli's third lower bound with features (docs/solver.md), which takes one linear problem per
    pair. It never exceeds the distance and equals it at α = 0. Arguments are those of :func:`tfgw.ot.fgw`.

    Tensors on a GPU are solved there. Distances, gaps and spreads are then those of the GPU, and the CPU computes the
    lower bounds and examines the GPU's plans.
    """
    problem = problem_of(
        graphs,
        templates,
        alpha,
        n_starts=n_starts,
        start_kinds=start_bits(start_kinds, given=initial_plans is not None),
        initial_plans=initial_plans,
        num_threads=thread_count(num_threads),
        **options,
    )
    solution = solve_and_assess(problem)
    assert solution.results is not None
    assert solution.diagnosis is not None
    spreads, lower_bounds, local_minima = solution.diagnosis
    return Diagnosis(
        distances=solution.distances,
        lower_bounds=lower_bounds,
        spreads=spreads,
        gaps=solution.results.gaps,
        local_minima=local_minima.bool(),
        status=solution.results.status,
    )

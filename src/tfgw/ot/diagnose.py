"""How far the distances can be trusted: local minima, the spread over starts, a certified lower bound."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.op import _allocate, _problem, _solve, check_finite, weight_tolerance
from tfgw.ot.problem import GraphBatch, Templates, check_options, check_pair, check_start, checked_alpha, expand_alpha
from tfgw.ot.solve import _template_weights, _threads
from tfgw.ot.starts import START_KINDS, start_bits


class Diagnosis(NamedTuple):
    """What is known about the distances of B graphs to K templates; all are ``(B, K)``, on the CPU.

    Attributes:
        distances: The lowest value over all starts.
        lower_bounds: What no coupling is below: the optimum lies between this and ``distances``.
        spreads: Between the highest and the lowest value that starts ended with; 0 for a single start.
        gaps: Frank–Wolfe gap at the plan: no coupling has a linearised cost lower by more than this.
        local_minima: Whether no way down is known: the gap is within the tolerance, the vertex that the gradient points
            to is not lower, and neither is any exchange of two entries of the plan between linked nodes.
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
        """How far above the optimum a distance is at most, relative to the distance: 0 where it is the optimum."""
        return (self.distances - self.lower_bounds) / self.distances.clamp_min(torch.finfo(torch.float64).tiny)


def diagnose(
    graphs: GraphBatch,
    templates: Templates,
    alpha: float | Tensor,
    *,
    max_iter: int = 1000,
    tol: float = 1e-9,
    n_starts: int = 8,
    start_kinds: Sequence[str] = START_KINDS,
    initial_plans: Tensor | None = None,
    num_threads: int | None = None,
) -> Diagnosis:
    """Solve as :func:`tfgw.ot.fgw` does, and say how good the result is.

    The lower bound is Mémoli's third lower bound with features (docs/solver.md): one linear problem per pair. It is the
    distance itself at α = 0, and never above it. Arguments are those of :func:`tfgw.ot.fgw`.
    """
    check_pair(graphs, templates)
    check_options(max_iter=max_iter, tol=tol, n_starts=n_starts)
    bits = start_bits(start_kinds, given=initial_plans is not None)
    check_start(initial_plans, graphs, templates)
    weights = _template_weights(templates)
    inputs: tuple[Any, ...] = (
        graphs.x, graphs.batch, graphs.num_graphs, graphs.node_weights, graphs.edge_index, graphs.edge_weight,
        graphs.structure, templates.structure, templates.features, weights,
        expand_alpha(checked_alpha(alpha, templates), len(weights)),
    )  # fmt: skip
    inputs = tuple(value.detach().cpu() if isinstance(value, Tensor) else value for value in inputs)
    problem = _problem(*inputs)
    problem.check(weight_tolerance(graphs.x, templates.features))
    check_finite("initial_plans", initial_plans, graphs.batch)
    pairs = (graphs.num_graphs, len(weights))
    found: dict[str, np.ndarray | None] = {
        "spread": np.zeros(pairs),
        "lower_bound": np.zeros(pairs),
        "local_minimum": np.ones(pairs, dtype=np.int32),
    }
    out = _allocate(len(graphs.x), *pairs, weights.shape[1], False) | found
    start = None if initial_plans is None else initial_plans.detach().cpu()
    _solve(problem, start, out, max_iter, tol, n_starts, bits, _threads(num_threads))
    tensors = {name: torch.from_numpy(array) for name, array in out.items() if array is not None}
    return Diagnosis(
        distances=tensors["distance"],
        lower_bounds=tensors["lower_bound"],
        spreads=tensors["spread"],
        gaps=tensors["gap"],
        local_minima=tensors["local_minimum"].bool(),
        status=tensors["status"],
    )

"""Results of a solve on a GPU. Apart from the distances, they share one or two allocations instead of eight.

`place_results` in host/layout.cpp defines the same layout for the kernels.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.problem import Results


class HostSolution(NamedTuple):
    """What the host code returns; ``None`` for parts that were not requested."""

    distances: Tensor
    pairs: Tensor | None
    """See :func:`unpacked`. If only the backward pass reads pairs and plans, they are in the memory of ``prepared``."""
    plans: Tensor | None
    prepared: Tensor | None
    """The prepared problem, which the backward pass reads."""
    spreads: Tensor | None


class Saved(NamedTuple):
    """The fields of a :class:`HostSolution` that the backward pass reads."""

    prepared: Tensor | None
    pairs: Tensor | None
    plans: Tensor | None


def unpacked(pairs: Tensor, plans: Tensor | None, nodes: int, columns: int) -> Results:
    """Return each result as a view of the shared allocation.

    Args:
        pairs: Structure costs, feature costs, gaps, and iterations and status in the space of one float64 value,
            ``(4, graphs, templates)``.
        plans: Plans, potentials of the graphs' nodes and potentials of the templates' nodes, concatenated; or ``None``.
        nodes: Number of nodes of all graphs.
        columns: Number of nodes of a template.
    """
    structure_costs, feature_costs, gaps, counts = pairs.unbind()
    graphs, templates = counts.shape
    iterations, status = counts.view(torch.int32).view(2, graphs, templates).unbind()
    of_pairs = (structure_costs, feature_costs, gaps, iterations, status)
    if plans is None:
        return Results(*of_pairs, *(pairs.new_empty(0) for _ in range(3)))
    rows = nodes * templates
    plan, u, v = plans.split_with_sizes([rows * columns, rows, graphs * templates * columns])
    return Results(
        *of_pairs,
        plan.view(nodes, templates, columns),
        u.view(nodes, templates),
        v.view(graphs, templates, columns),
    )

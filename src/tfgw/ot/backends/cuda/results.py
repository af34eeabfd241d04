"""Results of a solve on a GPU. Apart from the distances, they share one or two allocations instead of eight.

`place_results` in host/layout.cpp defines the same layout for the kernels.
"""

from enum import IntEnum

import torch
from torch import Tensor

from tfgw.ot.problem import DIAGNOSIS, GRADIENTS, PLANS, RESULTS, Results


class Wanted(IntEnum):
    """Results to keep (the same values as in host/gpu.hpp)."""

    DISTANCES = 0
    PAIRS = 1
    """Distances, ``pairs`` (see :func:`unpacked`) and the prepared problem."""
    PLANS = 2
    """Everything in ``PAIRS``, and ``plans``."""
    GRADIENTS = 3
    """The same as ``PLANS``, for the backward pass only: pairs and plans follow the prepared problem in memory."""
    DIAGNOSIS = 4
    """The same as ``PLANS``, and the spreads of several starts."""

    @classmethod
    def of(cls, wanted: int) -> "Wanted":
        """Return the results to keep for the flags of a backend call."""
        if wanted & DIAGNOSIS:
            return cls.DIAGNOSIS
        if wanted & PLANS or (wanted & RESULTS and wanted & GRADIENTS):
            return cls.PLANS
        return cls.PAIRS if wanted & RESULTS else cls.GRADIENTS if wanted & GRADIENTS else cls.DISTANCES


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

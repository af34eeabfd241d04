"""Results of a solve on a GPU. They share one or two allocations beside the distances, instead of eight.

host/layout.cpp, `place_results`, tells the kernels the same.
"""

from enum import IntEnum

import torch
from torch import Tensor

from tfgw.ot.problem import GRADIENTS, PLANS, RESULTS, Results


class Wanted(IntEnum):
    """Results to keep (the same values as in host/gpu.hpp)."""

    DISTANCES = 0
    PAIRS = 1
    """Distances, ``pairs`` (see :func:`unpacked`) and the prepared problem."""
    PLANS = 2
    """These and ``plans``."""
    GRADIENTS = 3
    """As much, for the backward pass only: pairs and plans follow the prepared problem, in one piece of memory."""

    @classmethod
    def of(cls, wanted: int) -> "Wanted":
        """The results to keep for the flags that a backend is given."""
        if wanted & PLANS or (wanted & RESULTS and wanted & GRADIENTS):
            return cls.PLANS
        return cls.PAIRS if wanted & RESULTS else cls.GRADIENTS if wanted & GRADIENTS else cls.DISTANCES


def unpacked(pairs: Tensor, plans: Tensor | None, nodes: int, columns: int) -> Results:
    """Each result as a view of the shared memory.

    Args:
        pairs: Both costs, gaps, and the two counts in the room of one, ``(4, graphs, templates)``.
        plans: Plans, then the potentials of the graphs' nodes, then those of the templates', one after the other; or
            ``None``.
        nodes: Nodes of all graphs.
        columns: Nodes of a template.
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

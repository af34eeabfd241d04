"""What a solve writes besides the distances: two allocations, not eight, before it can begin.

host/layout.cpp, `place_results`, tells the kernels the same.
"""

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor


class Wanted(IntEnum):
    """What a solve is to leave behind (host/gpu.hpp has the same numbers): each includes what comes before it."""

    DISTANCES = 0
    PAIRS = 1
    PLANS = 2
    """With the prepared problem, all that gradients need."""


class Solved(NamedTuple):
    """Results of all pairs, one behind the other."""

    pairs: Tensor
    """Both costs, gaps, and the two counts in the room of one, ``(4, graphs, templates)``."""
    plans: Tensor | None
    """Plans, then the potentials of the graphs' nodes, then those of the templates'; ``None`` where left out."""
    nodes: int
    """Of all graphs."""
    columns: int
    """Nodes of a template."""

    def tensors(self, with_plans: bool) -> tuple[Tensor, ...]:
        """Each result in the order of the operators', where it is; without plans, the last three are empty."""
        structure_cost, feature_cost, gap, counts = self.pairs.unbind()
        graphs, templates = counts.shape
        iterations, status = counts.view(torch.int32).view(2, graphs, templates).unbind()
        of_pairs = (structure_cost, feature_cost, gap, iterations, status)
        if self.plans is None or not with_plans:
            nothing = self.pairs.new_empty(0)
            return (*of_pairs, nothing, nothing, nothing)
        rows = self.nodes * templates
        plan, u, v = self.plans.split_with_sizes([rows * self.columns, rows, graphs * templates * self.columns])
        return (
            *of_pairs,
            plan.view(self.nodes, templates, self.columns),
            u.view(self.nodes, templates),
            v.view(graphs, templates, self.columns),
        )

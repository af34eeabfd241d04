"""What a solve writes besides the distances: two allocations, not eight, before it can begin."""

from typing import NamedTuple

import torch
from torch import Tensor


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

    @classmethod
    def room(cls, like: Tensor, graphs: int, templates: int, columns: int, with_plans: bool) -> "Solved":
        """Memory for the results, where ``like`` is, which has one row per node."""
        nodes, pairs = like.shape[0], graphs * templates
        words = nodes * templates * (columns + 1) + pairs * columns
        return cls(
            like.new_empty((4, graphs, templates), dtype=torch.float64),
            like.new_empty(words, dtype=torch.float64) if with_plans else None,
            nodes,
            columns,
        )

    def addresses(self) -> tuple[int, ...]:
        """Of each result, in the order of the kernels' struct."""
        _, graphs, templates = self.pairs.shape
        costs, pairs, rows = self.pairs.data_ptr(), 8 * graphs * templates, 8 * self.nodes * templates
        counts = costs + 3 * pairs
        of_pairs = (costs, costs + pairs, costs + 2 * pairs, counts, counts + pairs // 2)
        if self.plans is None:
            return (*of_pairs, 0, 0, 0)
        plans = self.plans.data_ptr()
        potentials = plans + rows * self.columns
        return (*of_pairs, plans, potentials, potentials + rows)

    def tensors(self, with_plans: bool) -> tuple[Tensor, ...]:
        """Each result in the same order, where it is; without plans, the last three are empty."""
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

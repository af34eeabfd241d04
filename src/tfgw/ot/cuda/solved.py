"""What a solve leaves on the device. Besides the distances two allocations, not eight, before it can begin.

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


class Solution(NamedTuple):
    """Results of all pairs, ``None`` where they are not wanted."""

    distance: Tensor
    pairs: Tensor | None
    """Both costs, gaps, and the two counts in the room of one, ``(4, graphs, templates)``."""
    plans: Tensor | None
    """Plans, then the potentials of the graphs' nodes, then those of the templates', one behind the other."""
    prepared: Tensor | None
    """The problem as prepared, for :func:`tfgw.ot.cuda.run.backward`."""


def unpacked(pairs: Tensor, plans: Tensor | None, nodes: int, columns: int) -> tuple[Tensor, ...]:
    """Each result in the order of the operators', where it is; without plans, the last three are empty.

    Args:
        pairs: Of a :class:`Solution`.
        plans: The same; or ``None``.
        nodes: Of all graphs.
        columns: Nodes of a template.
    """
    structure_cost, feature_cost, gap, counts = pairs.unbind()
    graphs, templates = counts.shape
    iterations, status = counts.view(torch.int32).view(2, graphs, templates).unbind()
    of_pairs = (structure_cost, feature_cost, gap, iterations, status)
    if plans is None:
        nothing = pairs.new_empty(0)
        return (*of_pairs, nothing, nothing, nothing)
    rows = nodes * templates
    plan, u, v = plans.split_with_sizes([rows * columns, rows, graphs * templates * columns])
    return (
        *of_pairs,
        plan.view(nodes, templates, columns),
        u.view(nodes, templates),
        v.view(graphs, templates, columns),
    )

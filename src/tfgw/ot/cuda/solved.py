"""What a solve leaves on the device. Besides the distances one or two allocations, not eight, before it can begin.

host/layout.cpp, `place_results`, tells the kernels the same.
"""

from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor


class Wanted(IntEnum):
    """What a solve is to leave behind (host/gpu.hpp has the same numbers)."""

    DISTANCES = 0
    PAIRS = 1
    """Distances, ``pairs`` and ``prepared`` of a :class:`Solution`."""
    PLANS = 2
    """These and ``plans``."""
    GRADIENTS = 3
    """As much, for :func:`tfgw.ot.cuda.run.backward` only: pairs and plans behind ``prepared``, in one piece."""


class Solution(NamedTuple):
    """Results of all pairs, ``None`` where they are not wanted."""

    distance: Tensor
    pairs: Tensor | None
    """Both costs, gaps, and the two counts in the room of one, ``(4, graphs, templates)``."""
    plans: Tensor | None
    """Plans, then the potentials of the graphs' nodes, then those of the templates', one behind the other."""
    prepared: Tensor | None
    """The problem as prepared, for :func:`tfgw.ot.cuda.run.backward`."""


def behind_prepared(prepared: Tensor, distance: Tensor, nodes: int, columns: int) -> tuple[Tensor, Tensor]:
    """Pairs and plans of a solve for gradients; ``distance`` is any tensor of that shape."""
    graphs, templates = distance.shape
    sizes = [4 * graphs * templates, sum(_plan_sizes(graphs, templates, nodes, columns))]
    pairs, plans = prepared[-8 * sum(sizes) :].view(torch.float64).split_with_sizes(sizes)
    return pairs.view(4, graphs, templates), plans


def _plan_sizes(graphs: int, templates: int, nodes: int, columns: int) -> list[int]:
    rows = nodes * templates
    return [rows * columns, rows, graphs * templates * columns]


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
    plan, u, v = plans.split_with_sizes(_plan_sizes(graphs, templates, nodes, columns))
    return (
        *of_pairs,
        plan.view(nodes, templates, columns),
        u.view(nodes, templates),
        v.view(graphs, templates, columns),
    )

"""All pairs of a case for POT's ot.batch.solve_gromov_batch, which wants problems of equal size.

Smaller graphs are padded with nodes of almost no weight; without stopping early, values are those of each pair alone to
1e-11 (its stopping rules look at the whole batch).
"""

from typing import Any, NamedTuple

import torch
from common import Case
from ot.batch import solve_gromov_batch
from torch import Tensor
from torch_geometric.utils import to_dense_adj, to_dense_batch

PADDING_WEIGHT = 1e-15  # of nodes that are not there: the solver takes logarithms
ALPHA = 0.5


class Pairs(NamedTuple):
    """C, C̄, feature costs and weights of every (graph, template) pair, graph by graph."""

    Ca: Tensor  # (pairs, n, n), n of the largest graph
    Cb: Tensor  # (pairs, m, m)
    M: Tensor  # (pairs, n, m)
    a: Tensor  # (pairs, n)
    b: Tensor  # (pairs, m)


class Found(NamedTuple):
    values: Tensor
    """``(graphs, templates)``"""
    marginal_error: float
    """Mass by which the worst plan misses its marginals: sum over the nodes of graph and template."""


def padded_pairs(case: Case, device: str) -> Pairs:
    batch, templates = case.batch.clone().to(device), case.templates
    count, nodes, _ = templates.features.shape
    x, is_node = to_dense_batch(batch.x, batch.batch)
    C = to_dense_adj(batch.edge_index, batch.batch).to(x)
    M = torch.cdist(x[:, None], templates.features.to(device)[None]).square()
    a = torch.where(is_node, 1 / is_node.sum(1, keepdim=True), PADDING_WEIGHT).to(x)
    graphs = len(x)
    return Pairs(
        Ca=C.repeat_interleave(count, 0),
        Cb=templates.structure.to(device).repeat(graphs, 1, 1),
        M=M.flatten(0, 1),
        a=a.repeat_interleave(count, 0),
        b=x.new_full((graphs * count, nodes), 1 / nodes),
    )


@torch.no_grad()
def solve(pairs: Pairs, templates: int, settings: dict[str, Any]) -> Found:
    result = solve_gromov_batch(**pairs._asdict(), alpha=ALPHA, **settings)
    missed = [(result.plan.sum(axis) - given).abs().sum(1) for axis, given in ((2, pairs.a), (1, pairs.b))]
    return Found(result.value.view(-1, templates), float((missed[0] + missed[1]).max()))


def settings_that_meet(error: float, pairs: Pairs) -> dict[str, float]:
    """Its inner solver stops at a Euclidean error of the graph's marginal; ``error`` is a sum of absolute ones."""
    return {"tol_inner": error / pairs.a.shape[1] ** 0.5, "max_iter_inner": 20_000}

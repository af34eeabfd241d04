"""Costs of nodes and pairs of nodes of one graph against many others of different sizes, weighted and summed."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot import GraphBatch
from tfgw.ot.pair_details import PlanEntries

ENTRIES = 2**22
"""Approximate number of matrix entries that are computed at a time."""


class WeightedCosts(NamedTuple):
    """Sums over groups of other graphs: each of the K listed graphs, and all others together.

    Attributes:
        pairs: Contribution of the structure of each pair of nodes, ``(K + 1, n, n)``.
        features: Contribution of the features of each node, ``(K + 1, n)``.
    """

    pairs: Tensor
    features: Tensor

    def plus(self, other: "WeightedCosts") -> "WeightedCosts":
        """Add two sums."""
        return WeightedCosts(self.pairs + other.pairs, self.features + other.features)


def weighted_costs(
    graph: GraphBatch,
    others: GraphBatch,
    plans: PlanEntries,
    *,
    alpha: float,
    node_cost: str = "squared_euclidean",
    slopes: Tensor,
    reference: Tensor,
    listed: Tensor,
) -> WeightedCosts:
    """Divide ``slope * (distance − reference)`` of each other graph among nodes and pairs of nodes.

    Args:
        graph: The graph, with n nodes.
        others: The other graphs.
        plans: The plan of each pair.
        alpha: Trade-off between features (0) and structure (1).
        node_cost: Cost between features, as in :func:`tfgw.ot.pairwise`.
        slopes: Weight of each distance, ``(num_others,)``.
        reference: Reference of each distance, ``(num_others,)``.
        listed: Indices of the other graphs that are listed separately, ``(K,)``.
    """
    n, count = len(graph.x), others.num_graphs
    h = node_weights(graph)
    group = torch.full((count,), len(listed)).index_copy_(0, listed, torch.arange(len(listed)))
    features = (1 - alpha) * _feature_costs(graph, others, plans, node_cost)
    sums = torch.zeros(len(listed) + 1, n * n, dtype=torch.float64)
    structure_reference = torch.zeros(count, dtype=torch.float64)
    if alpha > 0:
        C, weights = structure_matrix(graph), torch.outer(h, h)
        for chunk, T, C_bar in _chunks(graph, others, plans):
            # Σₐᵦ Tᵢₐ Tⱼᵦ (Cᵢⱼ − C̄ₐᵦ)² with the square expanded
            pairs = alpha * (C**2 * weights - 2 * C * (T @ C_bar @ T.mT) + T @ C_bar**2 @ T.mT)
            structure = pairs.sum((1, 2))
            total = structure + features[chunk].sum(1)
            share = torch.where(total > 0, structure / total.clamp_min(1e-300), alpha)
            structure_reference[chunk] = reference[chunk] * share
            scaled = slopes[chunk, None, None] * (pairs - structure_reference[chunk, None, None] * weights)
            sums.index_add_(0, group[chunk], scaled.flatten(1))
    feature_reference = (reference - structure_reference)[:, None] * h
    scaled = slopes[:, None] * (features - feature_reference)
    by_group = torch.zeros(len(listed) + 1, n, dtype=torch.float64).index_add_(0, group, scaled)
    return WeightedCosts(sums.reshape(-1, n, n), by_group)


def node_weights(graph: GraphBatch) -> Tensor:
    """Return the weights of the nodes of one graph, ``(n,)``."""
    n = len(graph.x)
    return torch.full((n,), 1 / n, dtype=torch.float64) if graph.node_weights is None else graph.node_weights.double()


def structure_matrix(graph: GraphBatch) -> Tensor:
    """Return C ``(n, n)`` of one graph as the solver sees it: without weights, edges are a set without loops."""
    assert graph.edge_index is not None
    weights = None if graph.edge_weight is None else graph.edge_weight.double()
    n, graph_of_edge = len(graph.x), torch.zeros(graph.edge_index.shape[1], dtype=torch.int64)
    return _matrices(1, n, graph_of_edge, graph.edge_index, weights)[0]


def _matrices(count: int, size: int, graph: Tensor, ends: Tensor, weights: Tensor | None) -> Tensor:
    """Return the structures ``(count, size, size)`` of graphs with these edges."""
    found = torch.zeros(count, size, size, dtype=torch.float64)
    if weights is not None:
        return found.index_put_((graph, ends[0], ends[1]), weights, accumulate=True)
    found[graph, ends[0], ends[1]] = 1
    found.diagonal(dim1=1, dim2=2).zero_()
    return found


def _first_nodes(graphs: GraphBatch) -> tuple[Tensor, Tensor]:
    """Return the number of nodes of each graph, and its first node."""
    assert graphs.batch is not None
    sizes = torch.bincount(graphs.batch, minlength=graphs.num_graphs)
    return sizes, sizes.cumsum(0) - sizes


def _feature_costs(graph: GraphBatch, others: GraphBatch, plans: PlanEntries, node_cost: str) -> Tensor:
    """Return Fᵢ = Σₐ Tᵢₐ cost(fᵢ, f̄ₐ) of each node for each other graph, ``(num_others, n)``."""
    first = _first_nodes(others)[1]
    costs = torch.zeros(others.num_graphs, len(graph.x), dtype=torch.float64)
    step = max(1, ENTRIES // max(1, graph.x.shape[1]))
    for begin in range(0, len(plans.mass), step):
        pair, row, column, mass = (field[begin : begin + step] for field in plans)
        cost = _node_costs(graph.x[row], others.x[first[pair] + column], node_cost)
        costs.index_put_((pair, row), mass * cost, accumulate=True)
    return costs


def _node_costs(x: Tensor, y: Tensor, node_cost: str) -> Tensor:
    """Return the cost between the features of each row of ``x`` and ``y``."""
    if node_cost == "hamming":
        return (x != y).double().mean(1)
    squares = (x - y).square().sum(1)
    return squares.sqrt() if node_cost == "euclidean" else squares


def _chunks(graph: GraphBatch, others: GraphBatch, plans: PlanEntries) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield indices of other graphs, their plans ``(k, n, m)`` and their structures ``(k, m, m)``, padded with 0."""
    assert others.edge_index is not None
    assert others.batch is not None
    n = len(graph.x)
    sizes, first = _first_nodes(others)
    order = sizes.argsort(stable=True)  # graphs of similar size need little padding
    position = order.argsort()
    of_entry, entries = position[plans.pairs].sort(stable=True)
    of_edge, edges = position[others.batch[others.edge_index[0]]].sort(stable=True)
    m = sizes[order]
    full = ((n * n + n * m + m * m).cumsum(0) // ENTRIES).diff().nonzero()[:, 0] + 1
    for begin, end in pairwise([0, *full.tolist(), len(order)]):
        chunk = order[begin:end]
        largest = int(sizes[chunk].max())
        of_chunk = entries[slice(*torch.searchsorted(of_entry, torch.tensor([begin, end])).tolist())]
        T = torch.zeros(len(chunk), n, largest, dtype=torch.float64)
        T[position[plans.pairs[of_chunk]] - begin, plans.rows[of_chunk], plans.columns[of_chunk]] = plans.mass[of_chunk]
        linked = edges[slice(*torch.searchsorted(of_edge, torch.tensor([begin, end])).tolist())]
        graphs = others.batch[others.edge_index[0, linked]]
        weights = None if others.edge_weight is None else others.edge_weight[linked].double()
        C_bar = _matrices(
            len(chunk), largest, position[graphs] - begin, others.edge_index[:, linked] - first[graphs], weights
        )
        yield chunk, T, C_bar

"""Several starts: what they reach on symmetric graphs, and that they do not depend on node order."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ot.problems import STRUCTURES, Problem, random_problem
from tfgw.datasets import skip_circles
from tfgw.ot import GraphBatch, Templates, fgw, reference


def renumbered_circles(rng: np.random.Generator) -> Tensor:
    """One graph of each class with random numbers for its nodes, as adjacency matrices."""
    matrices = torch.zeros(10, 41, 41, dtype=torch.float64)
    for matrix, graph in zip(matrices, skip_circles(permute=False).train, strict=True):
        order = torch.from_numpy(rng.permutation(41))
        matrix[tuple(order[graph.edge_index])] = 1
    return matrices


def test_skip_circles() -> None:
    """What the docs recommend for graphs without features: isomorphic is 0, other classes are not."""
    rng = np.random.default_rng(0)
    x = torch.ones(410, 1, dtype=torch.float64)
    templates = Templates(x.reshape(10, 41, 1), renumbered_circles(rng))
    for _ in range(3):
        structure = renumbered_circles(rng).flatten()
        batch = torch.arange(10).repeat_interleave(41)
        graphs = GraphBatch(x, batch=batch, structure=structure)
        distances = fgw(graphs, templates, 1.0, n_starts=4, plans=None).distances
        same = torch.eye(10, dtype=torch.bool)
        assert float(distances[same].max()) < 1e-9
        assert float(distances[~same].min()) >= 0.02


@pytest.mark.parametrize("kind", STRUCTURES)
def test_node_order_of_graphs_without_ties(kind: str) -> None:
    problem = random_problem(5, kind, sizes=(9,), alpha=0.8)
    order = torch.from_numpy(np.random.default_rng(0).permutation(9))
    C = torch.from_numpy(problem.structure_of(0))
    weights = problem.graphs.node_weights
    graph = GraphBatch(
        problem.graphs.x[order],
        structure=C[order][:, order].flatten(),
        node_weights=weights if weights is None else weights[order],
    )
    expected = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=6)
    found = fgw(graph, problem.templates, problem.alpha, n_starts=6)
    torch.testing.assert_close(found.distances, expected.distances, rtol=1e-9, atol=0)
    torch.testing.assert_close(found.plans, expected.plans[order], rtol=1e-6, atol=1e-9)


def lowest_after_exchange(problem: Problem, b: int, k: int, T: np.ndarray) -> float:
    """The lowest value that exchanging two entries between linked nodes reaches, by trying all of them."""
    pair = problem.pair(b, k)
    lowest = np.inf
    entries = np.argwhere(T > 0)
    for i, p in entries:
        for j, q in entries:
            if i == j or p == q or pair.C[i, j] == 0:
                continue
            changed, t = T.copy(), min(T[i, p], T[j, q])
            changed[i, p] -= t
            changed[j, q] -= t
            changed[i, q] += t
            changed[j, p] += t
            lowest = min(lowest, reference.value(pair, changed))
    return lowest


@pytest.mark.parametrize("kind", STRUCTURES)
def test_no_exchange_is_lower(kind: str) -> None:
    problem = random_problem(2, kind, sizes=(6, 8), templates=3, template_nodes=5, alpha=0.95)
    several = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=2)
    for b, k in problem.pairs():
        plan = several.plans[problem.nodes_of(b), k].numpy()
        assert lowest_after_exchange(problem, b, k, plan) >= float(several.distances[b, k]) * (1 - 1e-9)


def test_single_starts_can_be_improved_by_exchanges() -> None:
    """Or the test above would say nothing."""
    improvable = 0
    for seed in range(5):
        problem = random_problem(seed, "sparse", sizes=(6, 8), templates=3, template_nodes=5, alpha=0.95)
        single = fgw(problem.graphs, problem.templates, problem.alpha)
        for b, k in problem.pairs():
            plan = single.plans[problem.nodes_of(b), k].numpy()
            improvable += lowest_after_exchange(problem, b, k, plan) < float(single.distances[b, k]) * (1 - 1e-9)
    assert improvable > 0

"""Several starts: what they reach on symmetric graphs, and that they do not depend on node order."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ot import reference
from tests.ot.problems import STRUCTURES, Problem, random_problem
from tfgw.datasets import skip_circles
from tfgw.ot import START_KINDS, GraphBatch, Templates, diagnose, fgw


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


def test_surroundings_break_ties() -> None:
    """At hh̄ᵀ nodes of equal degree tie. From there alone, most trees find themselves under other numbers."""
    rng, nodes, count = np.random.default_rng(0), 12, 40
    trees = [nx.to_numpy_array(nx.random_labeled_tree(nodes, seed=seed)) for seed in range(count)]
    orders = [rng.permutation(nodes) for _ in trees]
    renumbered = np.concatenate([C[order][:, order].ravel() for C, order in zip(trees, orders, strict=True)])
    x = torch.zeros(count * nodes, 0, dtype=torch.float64)
    batch = torch.arange(count).repeat_interleave(nodes)
    graphs = GraphBatch(x, batch=batch, structure=torch.from_numpy(renumbered))
    templates = Templates(x.reshape(count, nodes, 0), torch.from_numpy(np.stack(trees)))
    found = fgw(graphs, templates, 1.0).distances.diagonal()
    assert int((found < 1e-9).sum()) >= 34


def test_regular_graphs_without_features_need_no_uniform_start() -> None:
    """There hh̄ᵀ has the same gradient for all couplings; all starts are anchored, of which two beat one."""

    def regular(nodes: int, seed: int) -> Tensor:
        return torch.from_numpy(nx.to_numpy_array(nx.random_regular_graph(3, nodes, seed=seed)))

    structure = torch.cat([regular(12, seed).flatten() for seed in range(6)])
    x = torch.zeros(6 * 12, 0, dtype=torch.float64)
    graphs = GraphBatch(x, batch=torch.arange(6).repeat_interleave(12), structure=structure)
    templates = Templates(x[:30].reshape(3, 10, 0), torch.stack([regular(10, seed) for seed in (11, 12, 13)]))

    def found(n_starts: int, *kinds: str) -> Tensor:
        return fgw(graphs, templates, 1.0, n_starts=n_starts, start_kinds=kinds).distances

    assert torch.equal(found(2, "uniform", "anchored"), found(2, "anchored"))
    assert int((found(2, "anchored") < found(1, "anchored") - 1e-9).sum()) > 3


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("n_starts", [6, 80])
def test_node_order_of_graphs_without_ties(kind: str, n_starts: int) -> None:
    problem = random_problem(5, kind, sizes=(9,), alpha=0.8)
    order = torch.from_numpy(np.random.default_rng(0).permutation(9))
    C = torch.from_numpy(problem.structure_of(0))
    weights = problem.graphs.node_weights
    graph = GraphBatch(
        problem.graphs.x[order],
        structure=C[order][:, order].flatten(),
        node_weights=weights if weights is None else weights[order],
    )
    expected = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=n_starts)
    found = fgw(graph, problem.templates, problem.alpha, n_starts=n_starts)
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


def tree_problem(seed: int) -> tuple[GraphBatch, Templates]:
    """Random trees whose nodes have one of two labels: many local minima."""
    rng = np.random.default_rng(seed)

    def tree(nodes: int) -> tuple[Tensor, Tensor]:
        matrix = torch.zeros(nodes, nodes, dtype=torch.float64)
        for node in range(1, nodes):
            parent = int(rng.integers(max(0, node - 4), node))
            matrix[node, parent] = matrix[parent, node] = 1
        return matrix, torch.eye(2, dtype=torch.float64)[torch.from_numpy(rng.integers(2, size=nodes))]

    sizes = (17, 22, 14)
    trees, templates = [tree(n) for n in sizes], [tree(15) for _ in range(4)]
    graphs = GraphBatch(
        torch.cat([x for _, x in trees]),
        batch=torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)),
        structure=torch.cat([C.flatten() for C, _ in trees]),
    )
    return graphs, Templates(torch.stack([x for _, x in templates]), torch.stack([C for C, _ in templates]))


def distances(seed: int, n_starts: int, *start_kinds: str) -> Tensor:
    return fgw(*tree_problem(seed), 0.5, n_starts=n_starts, start_kinds=start_kinds, plans=None).distances


@pytest.mark.parametrize("kinds", [("uniform",), ("anchored",), ("uniform", "perturbed"), START_KINDS])
def test_more_starts_of_any_kind_are_never_worse_and_mostly_better(kinds: tuple[str, ...]) -> None:
    few, more, many = (distances(0, n, *kinds) for n in (2, 12, 70))
    assert bool((more <= few).all() and (many <= more).all())
    assert float((many < more * (1 - 1e-6)).double().mean()) > 0.2


def test_one_uniform_start_is_the_default() -> None:
    assert torch.equal(distances(0, 1, "uniform"), distances(0, 1, *START_KINDS))
    assert not torch.equal(distances(0, 1, "anchored"), distances(0, 1, *START_KINDS))


def test_order_and_repetition_of_kinds_do_not_matter() -> None:
    assert torch.equal(distances(0, 12, "perturbed", "uniform", "uniform"), distances(0, 12, "uniform", "perturbed"))


def test_starts_near_minima_find_lower_ones_than_fresh_starts() -> None:
    fresh, near = (
        torch.stack([distances(seed, 48, *kinds) for seed in range(8)]) for kinds in (START_KINDS[:2], START_KINDS)
    )
    assert float(near.mean()) < float(fresh.mean())
    higher, lower = (int(pairs.sum()) for pairs in (near > fresh * (1 + 1e-6), near < fresh * (1 - 1e-6)))
    assert 3 * higher < 2 * lower  # 15 and 33 of 96 pairs


def test_near_a_given_plan() -> None:
    graphs, templates = tree_problem(0)
    first = fgw(graphs, templates, 0.5)
    found = fgw(
        graphs, templates, 0.5, n_starts=20, start_kinds=["perturbed"], initial_plans=first.plans, plans=None
    ).distances
    assert bool((found <= first.distances * (1 + 1e-12)).all())
    assert float((found < first.distances * (1 - 1e-6)).double().mean()) > 0.5


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ("uniform", "start_kinds: expected a list of names, got 'uniform'"),
        (3, "start_kinds: expected a list of names, got 3"),
        (["uniform", "random"], "start_kinds: 'random' is none of uniform, anchored, perturbed"),
        ([], "start_kinds: must name at least one kind"),
        (["perturbed"], "start_kinds: 'perturbed' alone has nothing to begin with"),
    ],
)
def test_wrong_kinds_are_named(kinds: object, message: str) -> None:
    graphs, templates = tree_problem(0)
    for solve in (fgw, diagnose):
        with pytest.raises(ValueError, match=message):
            solve(graphs, templates, 0.5, n_starts=2, start_kinds=kinds)

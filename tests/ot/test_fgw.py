from inspect import signature

import numpy as np
import pytest
import torch

from tests.ot import reference
from tests.ot.oracles import emd, emd_value, linprog_value
from tests.ot.problems import STRUCTURES, Problem, random_problem, shuffled_copies
from tfgw.ot import GraphBatch, Status, Templates, Transport, fgw


def solve(problem: Problem, **options: object) -> Transport:
    return fgw(problem.graphs, problem.templates, problem.alpha, **options)


def plan_of(problem: Problem, found: Transport, b: int, k: int) -> np.ndarray:
    return found.plans[problem.nodes_of(b), k].numpy()


@pytest.mark.parametrize("weights", ["uniform", "random", "zeros"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_value_is_equation_1_at_the_plan(kind: str, weights: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights=weights)
    found = solve(problem)
    for b, k in problem.pairs():
        pair, plan = problem.pair(b, k), plan_of(problem, found, b, k)
        np.testing.assert_allclose(plan.sum(1), pair.h, rtol=0, atol=1e-12)
        np.testing.assert_allclose(plan.sum(0), pair.h_bar, rtol=0, atol=1e-12)
        assert plan.min() >= 0
        assert float(found.distances[b, k]) == pytest.approx(reference.value(pair, plan), rel=1e-12)
        assert float(found.structure_costs[b, k]) == pytest.approx(reference.structure_cost(pair, plan), rel=1e-12)
        assert float(found.feature_costs[b, k]) == pytest.approx(reference.feature_cost(pair, plan), rel=1e-12)


@pytest.mark.parametrize("kind", ["sparse", "directed", "dense"])
@pytest.mark.parametrize("template_nodes", [1, 32, 33, 65, 129])
def test_templates_of_any_size(template_nodes: int, kind: str) -> None:
    problem = random_problem(0, kind, sizes=(13, 20), templates=2, template_nodes=template_nodes)
    found = solve(problem)
    for b, k in problem.pairs():
        pair, plan = problem.pair(b, k), plan_of(problem, found, b, k)
        assert float(found.distances[b, k]) == pytest.approx(reference.value(pair, plan), rel=1e-12)
        G = reference.gradient(pair, plan)
        gap = (G * plan).sum() - emd_value(pair.h, pair.h_bar, G)
        assert gap <= 1e-9 * float(found.distances[b, k]) + 1e-12
        np.testing.assert_allclose(plan.sum(0), pair.h_bar, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", ["uniform", "random", "zeros"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_result_is_stationary(kind: str, weights: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights=weights)
    found = solve(problem, tol=1e-9)
    assert bool((found.status == Status.CONVERGED).all())
    for b, k in problem.pairs():
        pair, plan = problem.pair(b, k), plan_of(problem, found, b, k)
        G = reference.gradient(pair, plan)
        gap = (G * plan).sum() - emd_value(pair.h, pair.h_bar, G)
        assert gap <= 1e-9 * float(found.distances[b, k]) + 1e-12
        assert float(found.gaps[b, k]) == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_no_coupling_is_cheaper_at_the_gradient(kind: str) -> None:
    problem = random_problem(5, kind, weights="zeros")
    found = solve(problem)
    for b, k in problem.pairs()[::3]:
        pair, plan = problem.pair(b, k), plan_of(problem, found, b, k)
        G = reference.gradient(pair, plan)
        assert linprog_value(pair.h, pair.h_bar, G) == pytest.approx((G * plan).sum(), abs=1e-8)


@pytest.mark.parametrize("weights", ["random", "zeros"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_potentials_are_dual_at_the_gradient(kind: str, weights: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights=weights)
    found = solve(problem)
    for b, k in problem.pairs():
        pair, plan = problem.pair(b, k), plan_of(problem, found, b, k)
        u = found.graph_potentials[problem.nodes_of(b), k].numpy()
        v = found.template_potentials[b, k].numpy()
        slack = reference.gradient(pair, plan) - u[:, None] - v[None, :]
        assert slack.min() >= -1e-9  # at template nodes without weight too
        assert np.abs(slack[plan > 1e-9]).max() <= 1e-6
        assert np.abs(slack.min(axis=0)[pair.h_bar == 0]).max(initial=0) <= 1e-12
        assert v[pair.h_bar > 0].mean() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_a_graph_is_at_distance_zero_from_its_copies(kind: str, seed: int) -> None:
    copies = shuffled_copies(seed, kind)
    found = solve(copies.problem, initial_plans=copies.matching)
    np.testing.assert_allclose(found.distances.diagonal(), 0, atol=1e-14)
    off_diagonal = found.distances[~torch.eye(len(found.distances), dtype=torch.bool)]
    assert float(off_diagonal.min()) > 0.01


@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_alpha_0_is_optimal_transport(kind: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights="zeros", alpha=0)
    found = solve(problem)
    for b, k in problem.pairs():
        pair = problem.pair(b, k)
        cost = ((pair.F[:, None] - pair.F_bar[None]) ** 2).sum(-1)
        assert float(found.distances[b, k]) == pytest.approx(emd_value(pair.h, pair.h_bar, cost), rel=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_alpha_1_is_gromov_wasserstein(kind: str, seed: int) -> None:
    problem = random_problem(seed, kind, alpha=1)
    found = solve(problem)
    assert torch.equal(found.distances, found.structure_costs)
    for b, k in problem.pairs():
        plan = plan_of(problem, found, b, k)
        expected = reference.structure_cost(problem.pair(b, k), plan)
        assert float(found.distances[b, k]) == pytest.approx(expected, rel=1e-12)
    other_x = GraphBatch(**{**vars(problem.graphs), "x": 100 * problem.graphs.x.flip(0)})
    assert torch.equal(fgw(other_x, problem.templates, 1.0).distances, found.distances)


def test_alpha_1_needs_no_features() -> None:
    problem = random_problem(0, "weighted", alpha=1)
    without = Problem(
        GraphBatch(**{**vars(problem.graphs), "x": problem.graphs.x[:, :0]}),
        Templates(problem.templates.features[:, :, :0], problem.templates.structure, problem.templates.weights),
        problem.alpha,
    )
    assert torch.equal(solve(without).distances, solve(problem).distances)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_one_alpha_per_template_equals_each_alone(kind: str) -> None:
    problem = random_problem(2, kind)
    together = solve(problem).distances
    for k, alpha in enumerate(problem.alpha.tolist()):
        assert torch.equal(fgw(problem.graphs, problem.templates, alpha).distances[:, k], together[:, k])


def test_mean_value_is_not_above_plain_frank_wolfe() -> None:
    """Single pairs are luck, their mean is not: same start, same objective, a better step."""
    ours, plain = [], []
    for seed, kind in enumerate(STRUCTURES):
        problem = random_problem(seed, kind, sizes=(9, 12, 10), templates=6, template_nodes=7)
        found = solve(problem)
        ours += found.distances.flatten().tolist()
        plain += [reference.frank_wolfe(problem.pair(b, k), emd, max_iter=200).value for b, k in problem.pairs()]
    assert len(ours) == 90
    assert np.mean(ours) <= 1.001 * np.mean(plain)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_more_starts_are_never_worse(kind: str) -> None:
    problem = random_problem(1, kind, alpha=0.9)
    values = [solve(problem, n_starts=starts).distances for starts in (1, 3, 8)]
    assert bool((values[1] <= values[0] + 1e-15).all())
    assert bool((values[2] <= values[1] + 1e-15).all())


def test_several_starts_match_shuffled_regular_graphs() -> None:
    """Without features, hh̄ᵀ is a saddle on a regular graph, and the gradient there says nothing."""
    nodes = torch.arange(17)
    chords = [(nodes, (nodes + skip) % 17) for skip in (1, 4)]
    edges = torch.cat([torch.stack(pair) for a, b in chords for pair in ((a, b), (b, a))], dim=1)
    order = torch.randperm(17, generator=torch.Generator().manual_seed(3))
    C = torch.zeros(17, 17, dtype=torch.float64)
    C[order[edges[0]], order[edges[1]]] = 1
    graph = GraphBatch(torch.zeros(17, 1, dtype=torch.float64), edge_index=edges)
    found = fgw(graph, Templates(torch.zeros(1, 17, 1, dtype=torch.float64), C[None]), 1.0, n_starts=8)
    assert float(found.distances) == pytest.approx(0, abs=1e-12)


def test_iterations_are_bounded() -> None:
    problem = random_problem(0, "dense_directed", sizes=(9, 13, 8), alpha=0.95)
    free = solve(problem)
    assert int(free.iterations.max()) > 2
    assert bool((free.status == Status.CONVERGED).all())
    stopped = solve(problem, max_iter=2)
    assert int(stopped.iterations.max()) == 2
    assert bool((stopped.status[free.iterations > 2] == Status.MAX_ITER).all())
    assert bool((stopped.status[free.iterations <= 2] == Status.CONVERGED).all())
    for b, k in problem.pairs():  # what it returns is still a coupling and its value
        plan = plan_of(problem, stopped, b, k)
        np.testing.assert_allclose(plan.sum(0), problem.pair(b, k).h_bar, rtol=0, atol=1e-12)
        expected = reference.value(problem.pair(b, k), plan)
        assert float(stopped.distances[b, k]) == pytest.approx(expected, rel=1e-12)


def test_empty_graphs_at_the_end() -> None:
    problem = random_problem(0, "sparse")
    longer = GraphBatch(**{**vars(problem.graphs), "batch_size": len(problem.sizes) + 2})
    found, without = fgw(longer, problem.templates, problem.alpha), solve(problem)
    assert torch.equal(found.distances[:-2], without.distances)
    assert bool((found.distances[-2:] == 0).all())
    assert bool((found.status[-2:] == Status.EMPTY).all())
    assert bool((found.template_potentials[-2:] == 0).all())
    assert torch.equal(found.plans, without.plans)


@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_plans_can_be_sparse_or_left_out(kind: str) -> None:
    problem = random_problem(0, kind)
    dense, sparse, none = (solve(problem, plans=plans) for plans in ("dense", "sparse", None))
    assert sparse.plans.is_sparse
    assert torch.equal(sparse.plans.to_dense(), dense.plans)
    assert none.plans is none.graph_potentials is none.template_potentials is None
    assert torch.equal(none.distances, dense.distances)


@pytest.mark.parametrize("kind", ["weighted", "directed"])
def test_entries_listed_several_times_add_up(kind: str) -> None:
    problem = random_problem(0, kind)
    edges, weight = problem.graphs.edge_index, problem.graphs.edge_weight
    order = torch.randperm(2 * edges.shape[1], generator=torch.Generator().manual_seed(0))
    split = GraphBatch(
        **{
            **vars(problem.graphs),
            "edge_index": torch.cat([edges, edges], 1)[:, order],
            "edge_weight": torch.cat([0.25 * weight, 0.75 * weight])[order],
        }
    )
    torch.testing.assert_close(
        fgw(split, problem.templates, problem.alpha).distances, solve(problem).distances, rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("kind", ["sparse", "weighted", "directed"])
def test_the_same_structure_as_a_dense_matrix(kind: str) -> None:
    problem = random_problem(0, kind)
    blocks = [torch.from_numpy(problem.structure_of(b)).flatten() for b in range(len(problem.sizes))]
    dense = GraphBatch(
        problem.graphs.x,
        batch=problem.graphs.batch,
        structure=torch.cat(blocks),
        node_weights=problem.graphs.node_weights,
    )
    torch.testing.assert_close(
        fgw(dense, problem.templates, problem.alpha).distances, solve(problem).distances, rtol=1e-10, atol=0
    )


def test_one_graph_may_give_its_matrix_as_it_is() -> None:
    problem = random_problem(0, "dense_directed", sizes=(6,))
    n = problem.sizes[0]
    flat = GraphBatch(problem.graphs.x, structure=problem.graphs.structure)
    square = GraphBatch(problem.graphs.x, structure=problem.graphs.structure.reshape(n, n))
    both = [fgw(graphs, problem.templates, 0.4).distances for graphs in (flat, square)]
    assert torch.equal(*both)


def test_symmetric_formulas_would_be_wrong_on_directed_graphs() -> None:
    """The directed 3-cycle against its reverse: matching them needs a reflection, not a rotation."""
    cycle = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
    x = 10 * torch.arange(3, dtype=torch.float64)[:, None]
    found = fgw(GraphBatch(x, structure=cycle), Templates(x[None], cycle.T[None].clone()), 0.5)
    # Features hold the nodes in place. Of 9 ordered pairs, 6 differ by 1 between the cycle and its reverse.
    assert float(found.structure_costs) == pytest.approx(6 / 9)
    assert float(found.distances) == pytest.approx(3 / 9)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("side", ["graph", "template"])
def test_node_order_does_not_matter(kind: str, side: str, seed: int) -> None:
    problem = random_problem(seed, kind, sizes=(9,))
    n, m = 9, problem.templates.features.shape[1]
    rng = np.random.default_rng(seed)
    order, template_order = np.arange(n), np.arange(m)
    if side == "graph":
        order = rng.permutation(n)
    else:
        template_order = rng.permutation(m)
    C = problem.structure_of(0)[np.ix_(order, order)]
    graphs = GraphBatch(
        problem.graphs.x[order],
        structure=torch.from_numpy(C.copy()),
        node_weights=problem.graphs.node_weights[order],
    )
    templates = Templates(
        problem.templates.features[:, template_order],
        problem.templates.structure[:, template_order][:, :, template_order],
        problem.templates.weights[:, template_order],
    )
    torch.testing.assert_close(
        fgw(graphs, templates, problem.alpha).distances, solve(problem).distances, rtol=1e-9, atol=0
    )


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_iterations_never_exceed_their_limit(max_iter: int) -> None:
    """A cycle against itself starts at a saddle, which is left only while there are iterations for it."""
    ring = torch.arange(12)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    structure = torch.zeros(1, 12, 12, dtype=torch.float64)
    structure[0, edges[0], edges[1]] = 1
    x = torch.ones(12, 1, dtype=torch.float64)
    result = fgw(GraphBatch(x, edge_index=edges), Templates(x[None], structure), 1.0, max_iter=max_iter)
    assert int(result.iterations) <= max_iter


def exact_gap(pair: reference.Pair, plan: np.ndarray) -> float:
    """Of a symmetric pair, for graphs too large for the reference."""
    mean = 2 * ((pair.C**2 @ pair.h)[:, None] + (pair.C_bar**2 @ pair.h_bar)[None, :])
    M = ((pair.F[:, None] - pair.F_bar[None]) ** 2).sum(-1)
    G = pair.alpha * (mean - 4 * pair.C @ plan @ pair.C_bar) + (1 - pair.alpha) * M
    return float((G * plan).sum() - emd_value(pair.h, pair.h_bar, G))


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 6, 1000])
def test_the_last_oracle_runs_to_its_end(max_iter: int) -> None:
    """Two sweeps over the costs, which are enough on the way, do not find the optimal vertex of graphs of this size."""
    problem = random_problem(0, "dense", sizes=(90, 70), templates=3, template_nodes=60, alpha=0.5)
    found = solve(problem, max_iter=max_iter, tol=1e-3)
    assert int(found.iterations.max()) <= max_iter
    for b, k in problem.pairs():
        gap = exact_gap(problem.pair(b, k), plan_of(problem, found, b, k))
        assert float(found.gaps[b, k]) == pytest.approx(gap, rel=1e-6, abs=1e-9)
        converged = gap <= 1e-3 * float(found.distances[b, k])
        assert int(found.status[b, k]) == (Status.CONVERGED if converged else Status.MAX_ITER)


def ring(nodes: int) -> torch.Tensor:
    C = torch.eye(nodes, dtype=torch.float64).roll(1, 0)
    return C + C.T


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize(("nodes", "others"), [(12, 12), (15, 15), (12, 9), (10, 14)])
def test_a_saddle_is_left(nodes: int, others: int, alpha: float) -> None:
    """hh̄ᵀ is stationary between regular graphs, though most vertices are lower."""
    C, C_bar = ring(nodes), ring(others)
    graph = GraphBatch(torch.ones(nodes, 1, dtype=torch.float64), structure=C)
    templates = Templates(torch.ones(1, others, 1, dtype=torch.float64), C_bar[None])
    product = torch.full((nodes, 1, others), 1 / (nodes * others), dtype=torch.float64)
    pair = reference.Pair(
        C.numpy(), np.ones((nodes, 1)), np.full(nodes, 1 / nodes),
        C_bar.numpy(), np.ones((others, 1)), np.full(others, 1 / others), alpha,
    )  # fmt: skip
    at_product = reference.value(pair, product[:, 0].numpy())
    for start in (None, product):
        found = fgw(graph, templates, alpha, initial_plans=start)
        assert int(found.status) == Status.CONVERGED
        assert float(found.distances) < 0.9 * at_product


@pytest.mark.parametrize("kind", STRUCTURES)
def test_rounding_at_distance_zero_is_neither_negative_nor_a_way_down(kind: str, seed: int) -> None:
    for other in range(4):
        copies = shuffled_copies(10 * seed + other, kind)
        found = solve(copies.problem, initial_plans=copies.matching)
        assert bool((found.structure_costs >= 0).all())
        assert bool((found.status.diagonal() == Status.CONVERGED).all())
        assert bool((found.iterations.diagonal() == 1).all())


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_the_minimum_of_a_convex_problem(tol: float, seed: int) -> None:
    """C positive and C̄ negative semidefinite: the only minimum is no vertex, and plain Frank–Wolfe bounds it."""
    rng = np.random.default_rng(seed)
    n, m, d = 17, 11, 2
    A, B, x, y = (rng.normal(size=shape) for shape in ((n, 4), (m, 4), (n, d), (m, d)))
    pair = reference.Pair(A @ A.T, x, np.full(n, 1 / n), -B @ B.T, y, np.full(m, 1 / m), 0.5)
    graph = GraphBatch(torch.from_numpy(x), structure=torch.from_numpy(pair.C))
    templates = Templates(torch.from_numpy(y)[None], torch.from_numpy(pair.C_bar)[None])
    found, plain = fgw(graph, templates, pair.alpha, tol=tol), reference.frank_wolfe(pair, emd, max_iter=100)
    assert int(found.status) == Status.CONVERGED
    assert 10 < int(found.iterations) < 100
    assert exact_gap(pair, found.plans[:, 0].numpy()) <= tol * float(found.distances) + 1e-12
    assert plain.value - plain.gap <= float(found.distances) <= (1 + tol) * plain.value


def test_default_accuracy() -> None:
    """A start ends at a gap of 1e-9 of its value, or after 1,000 iterations."""
    defaults = {name: parameter.default for name, parameter in signature(fgw).parameters.items()}
    assert (defaults["tol"], defaults["max_iter"], defaults["n_starts"]) == (1e-9, 1000, 1)

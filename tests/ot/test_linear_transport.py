import numpy as np
import pytest
import torch

from tests.ot.oracles import emd_value, linprog_value
from tests.ot.problems import FAMILIES, PROBLEMS_PER_FAMILY, LinearProblems, linear_problems, random_problem
from tfgw.ot import GraphBatch, Status, Templates, Transport, linear_transport, wasserstein


def solve(problems: LinearProblems, **options: object) -> Transport:
    batch = torch.arange(len(problems.sizes)).repeat_interleave(torch.tensor(problems.sizes))
    return linear_transport(
        torch.from_numpy(problems.cost),
        batch=batch,
        node_weights=torch.from_numpy(problems.h),
        template_weights=torch.from_numpy(problems.h_bar),
        **options,
    )


def by_problem(problems: LinearProblems, rows: torch.Tensor) -> list[np.ndarray]:
    """The part of each problem in a result over nodes and templates, in the order of ``problems.each()``."""
    return [rows_of[:, k].numpy() for rows_of in rows.split(problems.sizes) for k in range(rows.shape[1])]


def test_there_are_enough_problems() -> None:
    counts = [sum(len(p.each()) for p in linear_problems(family, 0)) for family in FAMILIES]
    assert counts == [PROBLEMS_PER_FAMILY] * len(FAMILIES)
    assert sum(counts) >= 2000


@pytest.mark.parametrize("family", FAMILIES)
def test_optimum_equals_pot(family: str, seed: int) -> None:
    for problems in linear_problems(family, seed):
        found = solve(problems)
        expected = [emd_value(*p) for p in problems.each()]
        largest = np.abs(problems.cost).max()
        np.testing.assert_allclose(found.distances.flatten().numpy(), expected, rtol=1e-12, atol=1e-13 * largest)
        assert bool((found.status == Status.CONVERGED).all())


@pytest.mark.parametrize("family", ["generic", "few_weights_ties", "zero_weights", "uniform_square_ties", "one_node"])
def test_optimum_equals_linprog(family: str, seed: int) -> None:
    for problems in linear_problems(family, seed)[:3]:
        found = solve(problems).distances.flatten().tolist()
        expected = [linprog_value(*p) for p in problems.each()[::7]]
        np.testing.assert_allclose(found[::7], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 20, 60, 120, 200])
def test_many_rows(columns: int) -> None:
    """Far more rows than columns, with weights and costs full of ties: the shape of large graphs."""
    rng = np.random.default_rng(columns)
    h, h_bar = np.full(1500, 1 / 1500), rng.integers(1, 4, size=columns).astype(float)
    h_bar /= h_bar.sum()
    for cost in (rng.integers(0, 9, size=(1500, columns)).astype(float), rng.random((1500, columns))):
        found = linear_transport(torch.from_numpy(cost), template_weights=torch.from_numpy(h_bar))
        assert float(found.distances) == pytest.approx(emd_value(h, h_bar, cost), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_is_a_coupling_with_the_value_it_claims(family: str, seed: int) -> None:
    for problems in linear_problems(family, seed):
        found = solve(problems)
        plans = by_problem(problems, found.plans)
        for (h, h_bar, cost), plan, value in zip(problems.each(), plans, found.distances.flatten(), strict=True):
            assert plan.min() >= 0
            np.testing.assert_allclose(plan.sum(1), h, rtol=0, atol=1e-12)
            np.testing.assert_allclose(plan.sum(0), h_bar, rtol=0, atol=1e-12)
            assert float(value) == pytest.approx((plan * cost).sum(), rel=1e-12, abs=1e-13 * np.abs(cost).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_is_a_vertex(family: str, seed: int) -> None:
    for problems in linear_problems(family, seed):
        for plan in by_problem(problems, solve(problems).plans):
            assert (plan > 0).sum() <= sum(plan.shape) - 1


@pytest.mark.parametrize("family", FAMILIES)
def test_potentials_prove_the_optimum(family: str, seed: int) -> None:
    for problems in linear_problems(family, seed):
        found = solve(problems)
        rows = zip(
            problems.each(),
            by_problem(problems, found.plans),
            by_problem(problems, found.graph_potentials),
            found.template_potentials.flatten(0, 1).numpy(),
            strict=True,
        )
        for (h, h_bar, cost), plan, u, v in rows:
            rounding = 1e-12 * np.abs(cost).max()
            slack = cost - u[:, None] - v[None, :]
            assert slack.min() >= -rounding  # feasible, at nodes without weight too
            assert np.abs(slack[plan > 0]).max() <= rounding  # complementary
            assert u @ h + v @ h_bar == pytest.approx((plan * cost).sum(), rel=1e-9, abs=rounding)


def test_one_problem_needs_no_batch() -> None:
    problems = linear_problems("generic", 0)[1]
    h, h_bar, cost = problems.each()[3]
    found = linear_transport(
        torch.from_numpy(cost), node_weights=torch.from_numpy(h), template_weights=torch.from_numpy(h_bar)
    )
    assert found.distances.shape == (1, 1)
    assert found.plans.shape == (len(h), 1, len(h_bar))
    assert float(found.distances) == float(solve(problems).distances.flatten()[3])


def test_uniform_weights_are_the_default() -> None:
    cost = torch.rand(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given = linear_transport(cost, node_weights=cost.new_full((6,), 1 / 6), template_weights=cost.new_full((4,), 1 / 4))
    assert float(linear_transport(cost).distances) == float(given.distances)


def test_plans_can_be_sparse_or_left_out() -> None:
    problems = linear_problems("uniform", 0)[2]
    dense, sparse, none = (solve(problems, plans=plans) for plans in ("dense", "sparse", None))
    assert sparse.plans.is_sparse
    assert torch.equal(sparse.plans.to_dense(), dense.plans)
    assert none.plans is none.graph_potentials is none.template_potentials is None
    assert torch.equal(none.distances, dense.distances)
    assert torch.equal(sparse.distances, dense.distances)


def test_batch_equals_single_whatever_the_threads() -> None:
    problems = linear_problems("few_weights_ties", 3)[1]
    together = solve(problems, num_threads=1)
    for threads in (2, 3):
        for one, other in zip(together, solve(problems, num_threads=threads), strict=True):
            assert torch.equal(one, other)
    plans = by_problem(problems, together.plans)
    for (h, h_bar, cost), plan, value in zip(problems.each(), plans, together.distances.flatten(), strict=True):
        alone = linear_transport(
            torch.from_numpy(cost.copy()),
            node_weights=torch.from_numpy(h),
            template_weights=torch.from_numpy(h_bar),
        )
        assert float(alone.distances) == float(value)
        assert np.array_equal(alone.plans[:, 0].numpy(), plan)


def test_wasserstein_is_transport_with_squared_distances() -> None:
    problem = random_problem(0, "none", weights="zeros")
    found = wasserstein(problem.graphs, problem.templates)
    assert bool((found.structure_costs == 0).all())
    assert torch.equal(found.feature_costs, found.distances)
    for b, k in problem.pairs():
        pair = problem.pair(b, k)
        cost = ((pair.F[:, None] - pair.F_bar[None]) ** 2).sum(-1)
        assert float(found.distances[b, k]) == pytest.approx(emd_value(pair.h, pair.h_bar, cost), rel=1e-12)


def test_wasserstein_does_not_cancel() -> None:
    # |f − f̄|² computed as |f|² + |f̄|² − 2 f·f̄ would leave no correct digit here.
    x = torch.tensor([[1e8], [1e8 + 1]], dtype=torch.float64)
    found = wasserstein(GraphBatch(x), Templates(x.flip(0)[None] + 0.25))
    assert float(found.distances) == pytest.approx(0.0625, rel=1e-12)


def test_wasserstein_refuses_structure() -> None:
    problem = random_problem(0, "sparse")
    with pytest.raises(ValueError, match="structure: wasserstein compares features only"):
        wasserstein(problem.graphs, problem.templates)

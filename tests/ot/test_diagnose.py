"""Diagnostics: the lower bound is one, and tight where that is known; what is no local minimum is told."""

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import ot as pot
import pytest
import torch

from tests.ot.oracles import emd_value
from tests.ot.problems import STRUCTURES, random_problem
from tfgw.ot import GraphBatch, Status, Templates, diagnose, fgw


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("weights", ["uniform", "random", "zeros"])
def test_bound_is_never_above_the_best_value_found(kind: str, weights: str) -> None:
    for seed in range(10):
        problem = random_problem(seed, kind, weights=weights)
        found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=8)
        best = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=30, plans=None).distances
        assert bool((found.lower_bounds <= best).all())
        assert bool((found.lower_bounds >= 0).all())


@pytest.mark.parametrize("kind", ["sparse", "dense_directed"])
def test_bound_is_the_linear_problem_that_it_should_be(kind: str) -> None:
    problem = random_problem(3, kind, sizes=(5, 6), templates=3, template_nodes=4)
    found = diagnose(problem.graphs, problem.templates, problem.alpha)
    for b, k in problem.pairs():
        pair = problem.pair(b, k)
        M = ((pair.F[:, None] - pair.F_bar[None]) ** 2).sum(-1)
        lines = [
            [
                np.mean(
                    [
                        pot.emd2_1d(C[i], C_bar[j], pair.h, pair.h_bar)
                        for C, C_bar in ((pair.C, pair.C_bar), (pair.C.T, pair.C_bar.T))
                    ]
                )
                for j in range(len(pair.h_bar))
            ]
            for i in range(len(pair.h))
        ]
        expected = emd_value(pair.h, pair.h_bar, (1 - pair.alpha) * M + pair.alpha * np.array(lines))
        assert float(found.lower_bounds[b, k]) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_without_structure_the_bound_is_the_distance() -> None:
    problem = random_problem(4, "sparse", alpha=0.0)
    found = diagnose(problem.graphs, problem.templates, problem.alpha)
    torch.testing.assert_close(found.lower_bounds, found.distances, rtol=1e-10, atol=1e-12)
    assert bool(found.local_minima.all())
    assert float(found.worst_excess.max()) < 1e-10


@pytest.mark.parametrize("number", range(4))
def test_what_has_not_converged_is_no_local_minimum(number: int) -> None:
    """Even where no exchange of two entries is lower, as in graphs of two nodes."""
    problem = random_problem(number, "sparse", sizes=(3, 4, 2), templates=5, template_nodes=3, alpha=0.3)
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=1, max_iter=1)
    stopped = found.status == Status.MAX_ITER
    assert int(stopped.sum()) > 3
    assert not found.local_minima[stopped].any()
    assert diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=4).local_minima.all()


def test_isomorphic_graphs_are_at_zero() -> None:
    graph = nx.petersen_graph()
    C = torch.from_numpy(nx.to_numpy_array(graph, dtype=float))
    order = torch.from_numpy(np.random.default_rng(0).permutation(10))
    x = torch.ones(10, 1, dtype=torch.float64)
    found = diagnose(GraphBatch(x, structure=C), Templates(x[None], C[order][:, order][None]), 1.0)
    assert float(found.distances) < 1e-12
    assert float(found.lower_bounds) == 0
    assert bool(found.local_minima)


def test_star_and_cycle_are_apart_for_certain() -> None:
    """Degrees alone tell: 4, 1, 1, 1, 1 against 2, 2, 2, 2, 2 has rows that no coupling can match."""
    star, cycle = (torch.from_numpy(nx.to_numpy_array(g)) for g in (nx.star_graph(4), nx.cycle_graph(5)))
    x = torch.ones(5, 1, dtype=torch.float64)
    found = diagnose(GraphBatch(x, structure=star), Templates(x[None], cycle[None]), 1.0)
    centre, leaf = 2 / 5, 1 / 5  # row mass that has to change between 0 and 1
    assert float(found.lower_bounds) == pytest.approx((centre + 4 * leaf) / 5, abs=1e-11)


def test_same_values_as_the_solver() -> None:
    problem = random_problem(6, "weighted")
    solved = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=3)
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=3)
    assert torch.equal(found.distances, solved.distances)
    assert torch.equal(found.gaps, solved.gaps)
    assert torch.equal(found.status, solved.status)


def test_spread_is_between_starts() -> None:
    problem = random_problem(7, "dense", alpha=0.95, sizes=(9, 12))
    assert float(diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=1).spreads.max()) == 0
    spreads = [diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=s).spreads for s in (2, 12)]
    assert bool((spreads[1] >= spreads[0] - 1e-12).all())
    assert float(spreads[1].max()) > 1e-6


def test_what_is_no_local_minimum() -> None:
    problem = random_problem(0, "dense_directed", sizes=(9, 13, 8), alpha=0.95)
    stopped = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=1, max_iter=1)
    assert bool((stopped.status == Status.MAX_ITER).any())
    assert not bool(stopped.local_minima[stopped.status == Status.MAX_ITER].any())
    exchangeable = 0
    for seed in range(5):
        problem = random_problem(seed, "sparse", sizes=(6, 8), templates=3, template_nodes=5, alpha=0.95)
        single, several = (diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=s) for s in (1, 2))
        exchangeable += int((~single.local_minima).sum())
        assert bool(several.local_minima.all())
    assert exchangeable > 0


def test_empty_graphs_and_plain_features() -> None:
    x = torch.randn(4, 2, dtype=torch.float64)
    templates = Templates(torch.randn(3, 5, 2, dtype=torch.float64))
    found = diagnose(GraphBatch(x, batch=torch.zeros(4, dtype=torch.int64), batch_size=2), templates, 0.0)
    assert found.distances[1].tolist() == found.lower_bounds[1].tolist() == [0, 0, 0]
    torch.testing.assert_close(found.lower_bounds[0], found.distances[0], rtol=1e-10, atol=0)


def test_bad_input() -> None:
    problem = random_problem(0)
    with pytest.raises(ValueError, match="n_starts: must be at least 1, got 0"):
        diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=0)
    with pytest.raises(ValueError, match="tol: must not be negative"):
        diagnose(problem.graphs, problem.templates, problem.alpha, tol=-1.0)
    x = problem.graphs.x.clone()
    x[8] = torch.nan
    graphs = GraphBatch(x, batch=problem.graphs.batch, edge_index=problem.graphs.edge_index)
    with pytest.raises(ValueError, match="x: graph 1 has a feature"):
        diagnose(graphs, problem.templates, problem.alpha)


@pytest.mark.parametrize("solve", [fgw, diagnose])
def test_weights_are_checked_as_in_fgw(solve: Callable[..., object]) -> None:
    problem = random_problem(0, "sparse", weights="uniform")
    sizes = torch.bincount(problem.graphs.batch)[problem.graphs.batch]
    graphs = replace(problem.graphs, x=problem.graphs.x.float(), node_weights=1.01 / sizes.float())
    templates = Templates(problem.templates.features.float(), problem.templates.structure.float())
    with pytest.raises(ValueError, match=r"^node_weights: the weights of graph 0 sum to 1.01, not 1"):
        solve(graphs, templates, 0.5)


@pytest.mark.parametrize("solve", [fgw, diagnose])
def test_starts_are_checked_as_in_fgw(solve: Callable[..., object]) -> None:
    problem = random_problem(0, "sparse")
    start = torch.full((len(problem.graphs.x), 4, 5), torch.inf, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"^initial_plans: graph 0 has an entry that is not finite"):
        solve(problem.graphs, problem.templates, 0.5, initial_plans=start)

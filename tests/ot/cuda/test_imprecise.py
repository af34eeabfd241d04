"""Costs of very different size: the kernels cannot refine, and say how far from an optimum they may be."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from tests.ot.cuda import emulation
from tests.ot.cuda.test_emulated import as_input
from tests.ot.exact_transport import exact_optimum, exact_value
from tests.ot.problems import random_problem
from tests.ot.test_spread_costs import exact_weights, spread_costs
from tfgw.ot import START_KINDS, Status, fgw
from tfgw.ot.problem import Problem
from tfgw.ot.starts import start_bits

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")


def solve(h: np.ndarray, h_bar: np.ndarray, cost: np.ndarray) -> dict[str, torch.Tensor]:
    n, m = cost.shape
    given = Problem(
        x=torch.empty(n, 0, dtype=torch.float64),
        batch=torch.zeros(n, dtype=torch.int64),
        batch_size=1,
        node_weights=torch.from_numpy(h),
        edge_index=None,
        edge_weight=None,
        structure=None,
        template_structure=None,
        template_features=torch.empty(1, m, 0, dtype=torch.float64),
        template_weights=torch.from_numpy(h_bar)[None],
        alpha=torch.zeros(1, dtype=torch.float64),
        cost=torch.from_numpy(cost)[:, None],
    )
    found = emulation.solve(given)
    assert found is not None
    return found[0]


def excess(found: dict[str, torch.Tensor], h: np.ndarray, h_bar: np.ndarray, cost: np.ndarray) -> Fraction:
    return exact_value(found["plan"][:, 0].numpy(), cost) - exact_optimum(h, h_bar, cost)


@pytest.mark.parametrize("spread", [0.5, 20, 60])
def test_the_gap_is_a_bound(spread: float) -> None:
    """Costs over many powers of ten: the gap is no less than what the plan costs too much, and the status tells."""
    rng = np.random.default_rng(0)
    statuses = set()
    for n, m in ((4, 3), (7, 5), (40, 20), (9, 6)):
        h, h_bar, cost = exact_weights(rng, n), exact_weights(rng, m), spread_costs(rng, spread, (n, m))
        found = solve(h, h_bar, cost)
        value, gap = float(found["distance"]), float(found["gap"])
        assert excess(found, h, h_bar, cost) <= gap + 1e-14 * value
        assert (int(found["status"]) == Status.IMPRECISE) == (gap > 1e-9 * value)
        statuses.add(int(found["status"]))
        if spread < 1:
            assert gap == 0
    assert (Status.IMPRECISE in statuses) == (spread > 1)


def test_an_outlier_shows_in_the_gap() -> None:
    """It makes up nearly all of the value, so that the solve has converged, but the others may be suboptimal."""
    rng = np.random.default_rng(1)
    h, h_bar = exact_weights(rng, 9), exact_weights(rng, 7)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    x[0] *= 1e7
    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    found = solve(h, h_bar, cost)
    assert int(found["status"]) == Status.CONVERGED
    assert 0 < float(found["gap"]) < 1e-9 * float(found["distance"])
    assert excess(found, h, h_bar, cost) <= float(found["gap"])


def test_structure_and_features_of_different_scale() -> None:
    """At the end of Frank–Wolfe as well: a large cost that no plan pays hides the others."""
    problem = random_problem(2, "sparse", sizes=(6,), templates=1, template_nodes=5, alpha=0.5)
    x, y = problem.graphs.x.clone(), problem.templates.features.clone()
    x[0], y[0, 0] = 1e9, 1e9
    given = as_input(problem)._replace(x=x, template_features=y)
    found = emulation.solve(given._replace(node_weights=None, template_weights=torch.tensor([[2, 1, 1, 1, 1]]) / 6.0))
    assert found is not None
    ignored = float(found[0]["gap"])
    assert ignored > 0
    ordinary = emulation.solve(as_input(problem))
    core = fgw(problem.graphs, problem.templates, problem.alpha)
    assert ordinary is not None
    assert float(ordinary[0]["gap"]) == pytest.approx(float(core.gaps), abs=1e-14)


@pytest.mark.parametrize("starts", [2, 10])
def test_several_starts_report_the_same_gap(starts: int) -> None:
    """With structure but α = 0, each start is the same linear problem, whose costs an outlier hides."""
    problem = random_problem(3, "sparse", sizes=(9,), templates=1, template_nodes=7, alpha=0.0)
    x = problem.graphs.x.clone()
    x[0] *= 1e7
    given = as_input(problem)._replace(x=x)
    gpu = emulation.EmulatedGpu()
    several = emulation.solve(given._replace(n_starts=starts, start_kinds=start_bits(START_KINDS)), gpu=gpu)
    single = emulation.solve(given)
    assert several is not None
    assert single is not None
    assert "tfgw_starts_begin" in gpu.launched
    assert float(several[0]["gap"]) == float(single[0]["gap"]) > 0

"""Costs of very different size: the large ones do not hide what the small ones say.

``TFGW_SPREAD`` is the number of problems that are compared with POT (default: 200).
"""

import os
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import ot as pot
import pytest
import torch

from tests.ot.exact_transport import exact_optimum, exact_value
from tests.ot.problems import COLUMNS
from tests.ot.reference import Array, Pair, gradient
from tfgw.ot import GraphBatch, Status, Templates, Transport, fgw, linear_transport

PROBLEMS = int(os.environ.get("TFGW_SPREAD", "200"))
UNITS = 64  # weights are multiples of 1/64, so that no weight is rounded anywhere


def exact_weights(rng: np.random.Generator, count: int) -> Array:
    """Positive multiples of a power of two that sum to 1 exactly."""
    return (1 + rng.multinomial(UNITS - count, np.full(count, 1 / count))) / UNITS


def solve(h: Array, h_bar: Array, cost: Array) -> Transport:
    h, h_bar, cost = (torch.from_numpy(array) for array in (h, h_bar, cost))
    found = linear_transport(cost, node_weights=h, template_weights=h_bar, num_threads=1)
    assert int(found.status) == Status.CONVERGED
    assert float(found.gaps) == 0
    return found


def excess(found: Transport, h: Array, h_bar: Array, cost: Array) -> Fraction:
    """By how much the plan costs more than an optimal one."""
    return exact_value(found.plans[:, 0].numpy(), cost) - exact_optimum(h, h_bar, cost)


@pytest.mark.parametrize("place", [1e4, 1e7, 1e10])
def test_an_outlier_leaves_the_other_nodes_optimal(place: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(15):
        n, m = rng.choice(np.arange(3, 9), size=2, replace=False)
        h, h_bar, x, y = exact_weights(rng, n), exact_weights(rng, m), rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        x[0] *= place
        cost = ((x[:, None] - y[None]) ** 2).sum(-1)
        found = solve(h, h_bar, cost)
        others = (found.plans[1:, 0].numpy() * cost[1:]).sum()
        assert float(excess(found, h, h_bar, cost)) <= 1e-12 * others


def spread_costs(rng: np.random.Generator, spread: float, shape: tuple[int, int]) -> Array:
    return np.exp(rng.uniform(-spread, spread, size=shape))


@pytest.mark.parametrize("spread", [10, 30, 60, 200])
def test_spread_costs_have_the_exact_optimum(spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n, m = rng.choice(np.arange(2, 9), size=2, replace=False)
        h, h_bar, cost = exact_weights(rng, n), exact_weights(rng, m), spread_costs(rng, spread, (n, m))
        found = solve(h, h_bar, cost)
        assert float(found.distances) == pytest.approx(float(exact_optimum(h, h_bar, cost)), rel=1e-12)


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_known_matching_among_spread_costs(columns: int, seed: int) -> None:
    """One permutation has the cheapest column of each row. Offsets of rows, of any size, change nothing."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(columns)
    matched, slack = spread_costs(rng, 20, (1, columns))[0], spread_costs(rng, 10, (columns, columns))
    offsets = np.exp2(rng.integers(0, 40, size=columns))
    cost = (1 + slack) * matched.max() + offsets[:, None]
    cost[np.arange(columns), order] = matched + offsets
    uniform = np.full(columns, 1 / columns)
    plan = solve(uniform, uniform, cost).plans[:, 0].numpy()
    np.testing.assert_allclose(plan[np.arange(columns), order], 1 / columns, rtol=1e-12)


@pytest.mark.parametrize("spread", [10, 30, 60])
def test_potentials_prove_the_optimum(spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n, m = rng.choice(np.arange(2, 20), size=2, replace=False)
        h, h_bar, cost = exact_weights(rng, n), exact_weights(rng, m), spread_costs(rng, spread, (n, m))
        found = solve(h, h_bar, cost)
        u, v = found.graph_potentials.numpy(), found.template_potentials[0, 0].numpy()
        slack, rounding = cost - u - v, 1e-11 * max(np.abs(u).max(), np.abs(v).max())
        assert slack.min() >= -rounding
        assert np.abs(slack[found.plans[:, 0].numpy() > 0]).max() <= rounding


def test_rounding_of_costs_changes_no_plan(seed: int) -> None:
    """Every coupling of the first nodes has the same cost but for rounding, whether a small cost is beside or not."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n, m = 13, 11
        h, h_bar, cost = exact_weights(rng, n), exact_weights(rng, m), np.full((n, m), 100.0)
        cost[:-1, :-1] = rng.uniform(5, 10, size=(n - 1, 1)) + rng.uniform(5, 10, size=(1, m - 1))
        plans = []
        for smallest in (1e-3, 1e-10):
            cost[-1, -1] = smallest
            plans.append(solve(h, h_bar, cost).plans)
        assert torch.equal(*plans)


def random_problems(seed: int, count: int) -> Iterator[tuple[Array, Array, Array]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, m = rng.integers(2, 25, size=2)
        if rng.random() < 0.3:
            m = n
        kind = rng.integers(3)
        draw = [np.ones, lambda k: rng.random(k) + 0.05, lambda k: rng.integers(1, 4, size=k).astype(float)][kind]
        h, h_bar = draw(n), draw(m)
        yield h / h.sum(), h_bar / h_bar.sum(), spread_costs(rng, rng.choice([10, 20, 30, 40, 50, 60]), (n, m))


def test_never_worse_than_pot(seed: int) -> None:
    for h, h_bar, cost in random_problems(seed, PROBLEMS):
        found = float(solve(h, h_bar, cost).distances)
        peers = [pot.emd(h, h_bar, scaled, numItermax=10_000_000) for scaled in (cost, cost / cost.max())]
        assert found <= (1 + 1e-6) * min((plan * cost).sum() for plan in peers)


def test_rounding_of_weights_is_not_charged() -> None:
    """Three pairs of rows for three columns: the sums agree but for their last bits, and all else costs too much."""
    rng = np.random.default_rng(0)
    h = rng.random(3)
    h, h_bar = np.repeat(h / h.sum() / 2, 2), h / h.sum()
    h_bar[1] = np.nextafter(h_bar[1], 1)
    cost = np.full((6, 3), 1e30)
    cost[np.arange(6), np.arange(6) // 2] = 1 + np.arange(6)
    found = solve(h, h_bar, cost)
    assert float(found.distances) == pytest.approx(h @ (1 + np.arange(6)), rel=1e-12)
    np.testing.assert_allclose(found.plans[:, 0].sum(1).numpy(), h, rtol=1e-14)


def test_a_tiny_weight_is_not_rounding() -> None:
    h, h_bar = np.array([2.0**-55, 1 - 2.0**-55]), np.array([0.25, 0.75])
    cost = np.array([[1e20, 2e20], [1e-3, 1.0]])
    assert float(solve(h, h_bar, cost).distances) == pytest.approx(2.0**-55 * 1e20 + 0.25e-3 + 0.75, rel=1e-12)


def test_a_small_difference_of_weights_is_not_rounding() -> None:
    h, h_bar = np.array([0.5, 0.5]), np.array([0.5 - 2.0**-40, 0.5 + 2.0**-40])
    cost = np.array([[1.0, 1e20], [1e20, 2.0]])
    assert float(solve(h, h_bar, cost).distances) == pytest.approx(1e20 * 2.0**-40, rel=1e-6)


def test_costs_of_ordinary_size_pay_nothing() -> None:
    """Where nothing is to be refined, zeros included, plans keep the entries that are rounding of the weights."""
    h, h_bar = np.full(6, 1 / 6), np.full(3, 1 / 3)
    cost = np.random.default_rng(0).integers(0, 3, size=(6, 3)).astype(float)
    assert solve(h, h_bar, cost).plans.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_the_gap_is_true_beside_an_outlier_of_little_weight(alpha: float, seed: int) -> None:
    """The outlier costs little in all, so that the others are to be optimal to ``tol`` of what they cost."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n, m = 9, 7
        h, h_bar = exact_weights(rng, n), exact_weights(rng, m)
        h[1], h[0] = h[1] + h[0] - 2.0**-50, 2.0**-50
        x, y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        x[0] *= 1e9
        C, C_bar = (symmetric(rng.random((size, size))) for size in (n, m))
        graphs = GraphBatch(
            torch.from_numpy(x), structure=torch.from_numpy(C).flatten(), node_weights=torch.from_numpy(h)
        )
        templates = Templates(*(torch.from_numpy(part)[None] for part in (y, C_bar, h_bar)))
        found = fgw(graphs, templates, alpha)
        assert int(found.status) == Status.CONVERGED
        plan = found.plans[:, 0].numpy()
        cost = gradient(Pair(C, x, h, C_bar, y, h_bar, alpha), plan)
        gap = float(exact_value(plan, cost) - exact_optimum(h, h_bar, cost))
        assert gap <= 1e-8 * float(found.distances)


def symmetric(matrix: Array) -> Array:
    return matrix + matrix.T

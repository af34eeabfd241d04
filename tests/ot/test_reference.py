import itertools

import numpy as np
import pytest

from tests.ot import reference
from tests.ot.oracles import emd
from tests.ot.problems import STRUCTURES, random_problem


def some_coupling(pair: reference.Pair) -> reference.Array:
    """A coupling that is neither a product nor a vertex."""
    vertex = emd(pair.h, pair.h_bar, np.sin(np.arange(len(pair.h) * len(pair.h_bar))).reshape(len(pair.h), -1))
    return 0.3 * np.outer(pair.h, pair.h_bar) + 0.7 * vertex


@pytest.mark.parametrize("kind", STRUCTURES)
def test_value_is_the_sum_of_equation_1(kind: str) -> None:
    pair = random_problem(0, kind).pair(1, 2)
    T = some_coupling(pair)
    n, m = T.shape
    features = sum(T[i, k] * np.sum((pair.F[i] - pair.F_bar[k]) ** 2) for i in range(n) for k in range(m))
    structure = sum(
        (pair.C[i, j] - pair.C_bar[k, o]) ** 2 * T[i, k] * T[j, o]
        for i, j, k, o in itertools.product(range(n), range(n), range(m), range(m))
    )
    assert reference.feature_cost(pair, T) == pytest.approx(features, rel=1e-13)
    assert reference.structure_cost(pair, T) == pytest.approx(structure, rel=1e-13)
    assert reference.value(pair, T) == pytest.approx(pair.alpha * structure + (1 - pair.alpha) * features, rel=1e-13)


def test_value_by_hand() -> None:
    # An edge of weight 2 against one of weight 1, nodes matched: each of two ordered pairs adds ¼ (2 − 1)².
    edge = np.array([[0.0, 1.0], [1.0, 0.0]])
    half = np.full(2, 0.5)
    pair = reference.Pair(2 * edge, np.array([[0.0], [3.0]]), half, edge, np.array([[0.0], [1.0]]), half, 0.25)
    assert reference.value(pair, np.eye(2) / 2) == pytest.approx(0.25 * 0.5 + 0.75 * 0.5 * 4)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_gradient_agrees_with_differences_of_the_value(kind: str) -> None:
    pair = random_problem(1, kind).pair(0, 3)
    T = some_coupling(pair)
    direction = np.random.default_rng(2).normal(size=T.shape)
    step = 1e-4
    difference = reference.value(pair, T + step * direction) - reference.value(pair, T - step * direction)
    assert difference / (2 * step) == pytest.approx(float((reference.gradient(pair, T) * direction).sum()), rel=1e-9)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_frank_wolfe_descends_to_a_stationary_coupling(kind: str) -> None:
    pair = random_problem(3, kind).pair(2, 1)
    found = reference.frank_wolfe(pair, emd, tol=1e-5)
    np.testing.assert_allclose(found.plan.sum(1), pair.h, atol=1e-14)
    np.testing.assert_allclose(found.plan.sum(0), pair.h_bar, atol=1e-14)
    assert found.gap <= 1e-5 * found.value
    values = [reference.frank_wolfe(pair, emd, tol=0, max_iter=i).value for i in (1, 2, 3, 5, 9)]
    assert values == sorted(values, reverse=True)
    assert found.value < values[0] == reference.value(pair, np.outer(pair.h, pair.h_bar))


def test_frank_wolfe_stays_at_a_solution() -> None:
    pair = random_problem(4, "dense").pair(0, 0)
    found = reference.frank_wolfe(pair, emd, tol=1e-5)
    again = reference.frank_wolfe(pair, emd, tol=1e-5, start=found.plan)
    assert again.iterations == 1
    assert again.value == found.value

"""Regression of known functions of a graph."""

import networkx as nx
import numpy as np
import pytest

from tests.estimators.small import QUICK, rings_and_stars
from tfgw.estimators import TFGWRegressor


def shifted_graphs(count: int, *, seed: int) -> tuple[list, np.ndarray]:
    """Graphs whose features lie around a number that is then to be found."""
    graphs, _ = rings_and_stars(count, seed=seed)
    mean = np.random.default_rng(seed).uniform(-1, 1, size=count)
    return [(C, F + shift) for (C, F), shift in zip(graphs, mean, strict=True)], mean


def test_mean_feature() -> None:
    graphs, mean = shifted_graphs(40, seed=0)
    others, other_mean = shifted_graphs(16, seed=1)
    model = TFGWRegressor(**QUICK).fit(graphs, 1000 + 50 * mean)
    assert model.predict(others).shape == (16,)
    assert model.score(others, 1000 + 50 * other_mean) > 0.9  # the mean predictor has 0
    assert model.transform(others).shape == (16, QUICK["num_templates"])


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_size_of_cycles_without_features(recipe: str) -> None:
    """All nodes of all training graphs are alike, those of a path are not."""
    sizes = np.arange(4, 24)
    model = TFGWRegressor(epochs=60, recipe=recipe, random_state=0).fit([nx.cycle_graph(n) for n in sizes], sizes)
    found = model.predict([nx.cycle_graph(6), nx.cycle_graph(16), nx.path_graph(12)])
    assert found == pytest.approx([6, 16, 12], abs=5)


def test_several_targets() -> None:
    graphs, mean = shifted_graphs(40, seed=0)
    y = np.stack([mean, 100 * mean**2, np.full(40, 7.0)], axis=1)
    model = TFGWRegressor(**QUICK).fit(graphs, y)
    predicted = model.predict(graphs)
    assert predicted.shape == (40, 3)
    error = ((predicted - y) ** 2).mean(0)
    assert (error[:2] < 0.1 * y.var(0)[:2]).all()
    assert error[2] < 0.01
    assert model.fit(graphs[:4], y[:4, :1]).predict(graphs[:2]).shape == (2, 1)


@pytest.mark.parametrize(("y", "message"), [(np.full(8, np.nan), "NaN"), (np.zeros((8, 2, 2)), "dim 3|shape")])
def test_errors(y: np.ndarray, message: str) -> None:
    graphs, _ = rings_and_stars(8)
    with pytest.raises(ValueError, match=message):
        TFGWRegressor(**QUICK).fit(graphs, y)


def test_validation_graphs_choose_the_epoch() -> None:
    graphs, mean = shifted_graphs(24, seed=0)
    y = 1000 + 50 * mean
    model = TFGWRegressor(**{**QUICK, "epochs": 10}).fit(graphs[:16], y[:16], validation=(graphs[16:], y[16:]))
    scaled = model.target_scaler_.transform(model.predict(graphs[16:])[:, None])
    error = np.square(scaled - model.target_scaler_.transform(y[16:, None])).mean()
    np.testing.assert_allclose(model.validation_score_, -error)


def test_weights_of_graphs() -> None:
    graphs, _ = rings_and_stars(12)
    y = np.arange(12.0)
    quick = {**QUICK, "epochs": 2}
    plain = TFGWRegressor(**quick).fit(graphs, y).predict(graphs)
    np.testing.assert_array_equal(TFGWRegressor(**quick).fit(graphs, y, np.full(12, 3.0)).predict(graphs), plain)
    heavy = TFGWRegressor(**quick).fit(graphs, y, np.where(y > 8, 9.0, 1.0)).predict(graphs)
    assert heavy.mean() > plain.mean()
    some = TFGWRegressor(**quick).fit(graphs, y, (y < 9).astype(float)).predict(graphs)
    np.testing.assert_array_equal(some, TFGWRegressor(**quick).fit(graphs[:9], y[:9]).predict(graphs))


def test_targets_of_validation_graphs_do_not_scale() -> None:
    graphs, _ = rings_and_stars(16)
    y = 2.0 ** np.arange(16)  # each sum is that of one set of graphs only
    model = TFGWRegressor(**{**QUICK, "epochs": 1}, validation_fraction=0.25).fit(graphs, y)
    total = 12 * model.target_scaler_.mean[0]
    assert int(total) == total
    assert int(total).bit_count() == 12

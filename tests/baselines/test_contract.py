"""What every baseline does: learn, answer in the user's labels, repeat itself, refuse what cannot work."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from tests.baselines.small import ALL, BLIND, INVARIANT, NEURAL, awkward_graphs, labelled_graphs, name_of, permuted
from tfgw.baselines import DiffPool, PatchySAN

every = pytest.mark.parametrize("model", ALL, ids=name_of)


@pytest.mark.parametrize("model", [model for model in ALL if model not in BLIND], ids=name_of)
def test_learns_rings_and_stars(model: Any) -> None:
    graphs, names = labelled_graphs(60)
    others, other_names = labelled_graphs(16, seed=1)
    model = clone(model).fit(graphs, names)
    assert model.classes_.tolist() == ["ring", "star"]
    assert model.score(others, other_names) >= 15 / 16
    assert model.predict(others).shape == (16,)


@every
def test_graphs_of_every_shape(model: Any) -> None:
    graphs, names = labelled_graphs(12)
    graphs, y = [*awkward_graphs(), *graphs], np.array([0, 1] * 3 + [int(name == "ring") for name in names])
    model = _short(model).fit(graphs, y)
    assert set(model.predict(graphs)) <= {0, 1}
    assert model.predict(awkward_graphs()[:1]).shape == (1,)


@every
def test_graphs_without_features(model: Any) -> None:
    graphs, names = labelled_graphs()
    for graph in graphs:
        graph.x = None
        graph.num_nodes = int(graph.edge_index.max()) + 1
    model = clone(model).fit(graphs, names)
    assert model.n_features_in_ == 0
    assert model.predict(graphs).shape == (24,)
    if not isinstance(model, DiffPool | PatchySAN):  # means, or fields, of equal nodes are equal
        assert model.score(graphs, names) >= 0.9


@every
def test_a_seed_gives_one_model_and_equal_calls_equal_answers(model: Any) -> None:
    graphs, names = labelled_graphs()
    others, _ = labelled_graphs(16, seed=1)
    first, again = (_short(model).fit(graphs, names) for _ in range(2))
    np.testing.assert_array_equal(_answers(first, others), _answers(again, others))
    np.testing.assert_array_equal(_answers(first, others), _answers(first, others))


@every
def test_validation_score(model: Any) -> None:
    graphs, names = labelled_graphs(32)
    model = _short(model).fit(graphs[:24], names[:24], validation=(graphs[24:], names[24:]))
    assert model.validation_score_ == model.score(graphs[24:], names[24:])


@every
def test_errors(model: Any) -> None:
    graphs, names = labelled_graphs(8)
    with pytest.raises(NotFittedError):
        clone(model).predict(graphs)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(model).fit(graphs, names[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        clone(model).fit(graphs, None)
    narrow, _ = labelled_graphs(8)
    narrow[3].x = narrow[3].x[:, :2]
    with pytest.raises(ValueError, match="graph 3: 2 features per node, but graph 0 has 3"):
        clone(model).fit(narrow, names)
    fitted = _short(model).fit(graphs, names)
    with pytest.raises(ValueError, match="graph 0: no features, but the estimator was fitted on graphs with 3"):
        fitted.predict([_bare(graph) for graph in graphs])


@every
def test_grid_search_and_parameters(model: Any) -> None:
    graphs, names = labelled_graphs()
    search = GridSearchCV(_short(model), {"random_state": [0, 1]}, cv=2, error_score="raise").fit(graphs, names)
    assert search.best_params_["random_state"] in (0, 1)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert name_of(model) in repr(model)


@pytest.mark.parametrize("model", INVARIANT, ids=name_of)
def test_order_of_nodes_does_not_matter(model: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graphs, names = labelled_graphs()
    others = [*labelled_graphs(16, seed=1)[0], *awkward_graphs()]
    model = _short(model).fit(graphs, names)
    same = [permuted(graph, rng) for graph in others]
    np.testing.assert_allclose(_answers(model, same), _answers(model, others), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", NEURAL, ids=name_of)
def test_checkpoint_rule(model: Any) -> None:
    graphs, names = labelled_graphs(32)
    model = clone(model).set_params(epochs=12).fit(graphs[:24], names[:24], validation=(graphs[24:], names[24:]))
    assert [r.epoch for r in model.history_ if r.validation_score is not None] == [5, 10, 12]
    assert model.num_parameters_ == sum(parameter.numel() for parameter in model.model_.parameters())


def _short(model: Any) -> Any:
    return clone(model).set_params(epochs=3) if model in NEURAL else clone(model)


def _answers(model: Any, graphs: list[Any]) -> np.ndarray:
    return model.decision_function(graphs) if hasattr(model, "decision_function") else model.predict_proba(graphs)


def _bare(graph: Any) -> Any:
    bare = graph.clone()
    bare.x, bare.num_nodes = None, graph.num_nodes
    return bare

"""Classification: what is learned, in which form it is answered, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

from tests.estimators.small import QUICK, as_data, as_networkx, fitted, rings_and_stars
from tfgw.datasets import GraphDataset, skip_circles
from tfgw.estimators import TFGWClassifier
from tfgw.estimators import graphs as graphs_module
from tfgw.train import FitResult, Preprocessing, fit
from tfgw.train.recipes import RECIPES


@pytest.mark.slow
def test_skip_circles(seed: int) -> None:
    """Regular graphs without features, one permutation of each class for training, another for test."""
    split = skip_circles(copies=1, seed=seed)
    settings = {**QUICK, "num_templates": 10, "alpha": 1.0, "n_starts": 8, "epochs": 60, "template_lr": 0.001}
    labels = [split.train.classes[int(graph.y)] for graph in split.train]
    model = TFGWClassifier(**{**settings, "random_state": seed}).fit(split.train, labels)
    assert model.classes_.tolist() == list(split.train.classes)
    assert model.score(split.test, [split.test.classes[int(graph.y)] for graph in split.test]) == 1.0


def test_strings_two_classes() -> None:
    model = fitted()
    graphs, names = rings_and_stars(16, seed=1)
    assert model.score(graphs, names) == 1.0
    assert model.classes_.tolist() == ["ring", "star"]
    assert model.n_features_in_ == 3
    assert model.n_iter_ == len(model.history_) == QUICK["epochs"]
    proba, decision = model.predict_proba(graphs), model.decision_function(graphs)
    assert proba.shape == (16, 2)
    assert decision.shape == (16,)
    np.testing.assert_allclose(proba.sum(1), 1)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-decision)))
    assert (model.classes_[(decision > 0).astype(int)] == model.predict(graphs)).all()


def test_kinds_of_input_agree() -> None:
    model = fitted()
    graphs, _ = rings_and_stars(8, seed=1)
    expected = model.predict_proba(graphs)
    np.testing.assert_array_equal(model.predict_proba(as_data(graphs)), expected)
    np.testing.assert_allclose(model.predict_proba(as_networkx(graphs)), expected)


def test_multi_class() -> None:
    graphs, names = rings_and_stars(24)
    y = np.where(names == "ring", 30, np.where([len(C) > 5 for C, _ in graphs], 20, 10))
    model = TFGWClassifier(**{**QUICK, "num_templates": 6, "num_layers": 1, "width": 4}).fit(graphs, y)
    assert model.classes_.tolist() == [10, 20, 30]
    assert model.score(graphs, y) > 0.8
    assert model.decision_function(graphs[:5]).shape == model.predict_proba(graphs[:5]).shape == (5, 3)
    assert model.predict(graphs).dtype == y.dtype


def test_multi_label() -> None:
    """One label is the shape, the other the sign of the features."""
    graphs, names = rings_and_stars(32)
    sign = np.tile([1, 1, -1, -1], 8)
    graphs = [(C, F + s) for (C, F), s in zip(graphs, sign, strict=True)]
    y = np.stack([names == "ring", sign > 0, np.ones(32)], axis=1).astype(int)
    model = TFGWClassifier(**{**QUICK, "epochs": 200}).fit(graphs[:24], y[:24])
    assert model.predict(graphs).shape == (32, 3)
    assert (model.predict(graphs) == y).all()
    assert model.score(graphs[24:], y[24:]) == 1.0
    assert model.classes_.tolist() == [0, 1, 2]
    proba = model.predict_proba(graphs)
    assert ((proba > 0.5) == (model.decision_function(graphs) > 0)).all()


def test_random_state_decides() -> None:
    graphs, _ = rings_and_stars(6, seed=1)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first, again, other = (fitted(random_state=seed, epochs=2, dropout=0.1) for seed in (3, 3, 4))
    assert (torch.get_rng_state() == state).all()
    np.testing.assert_array_equal(first.predict_proba(graphs), again.predict_proba(graphs))
    assert (first.predict_proba(graphs) != other.predict_proba(graphs)).any()


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path", "precomputed"])
def test_structures_and_node_weights(structure: Any) -> None:
    graphs, names = rings_and_stars(16)
    rng = np.random.default_rng(0)
    weighted = [(2 * C, F, rng.dirichlet(np.ones(len(C)))) for C, F in graphs]
    model = TFGWClassifier(**{**QUICK, "epochs": 3, "structure": structure, "num_layers": 1}).fit(weighted, names)
    uniform = model.transform([graph[:2] for graph in weighted])
    assert np.abs(model.transform(weighted) - uniform).max() > 1e-3
    assert model.predict(graphs).shape == (16,)


def test_validation_and_patience() -> None:
    model = fitted(validation_fraction=0.25, patience=5, epochs=30)
    assert model.history_[4].validation_score is not None
    assert model.n_iter_ <= 30
    with pytest.raises(ValueError, match="patience: early stopping requires validation"):
        fitted(patience=5)


def test_features_are_standardised_by_the_training_graphs_alone() -> None:
    graphs, names = rings_and_stars()
    far = [(matrix, features + 1000) for matrix, features in graphs[16:]]
    model = TFGWClassifier(**QUICK | {"epochs": 1}).fit(graphs[:16], names[:16], validation=(far, names[16:]))
    nodes = np.concatenate([features for _, features in graphs[:16]])
    np.testing.assert_allclose(model.preprocessing_.mean, nodes.mean(0))
    np.testing.assert_allclose(model.preprocessing_.scale, nodes.std(0))


def test_validation_graphs_choose_the_epoch() -> None:
    graphs, names = rings_and_stars(24)
    settings = {**QUICK, "alpha": 0.9, "epochs": 12, "batch_size": 6}
    model = TFGWClassifier(**settings).fit(graphs[:16], names[:16], validation=(graphs[16:], names[16:]))
    validated = [record for record in model.history_ if record.validation_score is not None]
    assert [record.epoch for record in validated] == [5, 10, 12]
    assert model.validation_score_ == model.score(graphs[16:], names[16:])
    assert model.validation_score_ in [record.validation_score for record in validated]
    assert model.num_parameters_ == sum(parameter.numel() for parameter in model.model_.parameters())
    assert not hasattr(model.fit(graphs, names), "validation_score_")


def test_bad_validation_graphs() -> None:
    graphs, names = rings_and_stars(8)
    model = TFGWClassifier(**QUICK)
    with pytest.raises(ValueError, match=r"validation: label 'knot' does not occur among the training graphs"):
        model.fit(graphs, names, validation=(graphs[:1], ["knot"]))
    with pytest.raises(ValueError, match=r"validation: graph 0: 2 features per node, but .* with 3"):
        model.fit(graphs, names, validation=([(C, F[:, :2]) for C, F in graphs], names))
    with pytest.raises(ValueError, match="validation: X: the list of graphs is empty"):
        model.fit(graphs, names, validation=([], []))
    with pytest.raises(ValueError, match="validation: expected a pair"):
        model.fit(graphs, names, validation=graphs)
    with pytest.raises(ValueError, match=r"validation: cannot be combined with validation_fraction=0\.5"):
        TFGWClassifier(**QUICK, validation_fraction=0.5).fit(graphs, names, validation=(graphs, names))


def test_transform_gives_distances_to_the_learned_templates() -> None:
    model = fitted(template_nodes=5)
    graphs, _ = rings_and_stars(6, seed=1)
    assert model.transform(graphs).shape == (6, 4)
    assert model.templates_.features.shape == (4, 5, 3)
    assert model.get_feature_names_out().tolist() == [f"tfgwclassifier{k}" for k in range(4)]


def test_single_precision() -> None:
    model = fitted(precision="float32", epochs=2)
    assert model.templates_.features.dtype == torch.float32
    assert model.predict_proba(rings_and_stars(4)[0]).dtype == np.float64


def test_graphs_without_features() -> None:
    graphs, names = rings_and_stars(16)
    bare = [(C, None) for C, _ in graphs]
    model = TFGWClassifier(**QUICK, alpha=0.9).fit(bare, names)
    assert model.n_features_in_ == 0
    assert model.score(bare, names) == 1.0
    with pytest.raises(ValueError, match=r"graph 0: 3 features per node, but .* fitted on graphs with no features"):
        model.predict(graphs)


def test_errors() -> None:
    graphs, names = rings_and_stars(8)
    model = TFGWClassifier(**QUICK)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(graphs)
    with pytest.raises(AttributeError):  # so that hasattr says whether it was fitted
        _ = model.templates_
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(graphs, names[:-1])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(graphs, np.linspace(0, 1, 8))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(graphs, None)
    with pytest.raises(ValueError, match="num_templates: must be at least 1"):
        TFGWClassifier(**{**QUICK, "num_templates": 0}).fit(graphs, names)
    with pytest.raises(ValueError, match="lr: must be positive"):
        TFGWClassifier(**{**QUICK, "lr": -1}).fit(graphs, names)
    narrow = [(C, F[:, :2]) for C, F in graphs]
    with pytest.raises(ValueError, match=r"graph 0: 2 features per node, but .* fitted on graphs with 3"):
        fitted(epochs=1).predict(narrow)


def test_fixed_templates_are_compared_with_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing before the head is learned, the shortcut gives the model that exact training steps give."""
    exact = RECIPES["default"] | {"training_tol": 1e-9}
    fixed = {"learn_templates": False, "learn_weights": False, "alpha": 0.7, "dropout": 0.2, "recipe": exact}
    graphs, _ = rings_and_stars(10, seed=1)
    quick = fitted(**fixed)
    monkeypatch.setattr("tfgw.train.pipeline.has_fixed_distances", lambda model: False)
    usual = fitted(**fixed)
    np.testing.assert_allclose(quick.predict_proba(graphs), usual.predict_proba(graphs), rtol=1e-9)
    assert quick.alpha_ == pytest.approx(0.7)
    assert [record.score for record in quick.history_] == [record.score for record in usual.history_]


def test_parameter_count_of_the_paper() -> None:
    """Table 3: TFGW on PTC has 25.1k parameters (L = 2, width 16, 8 templates of 13 nodes, 18 labels)."""
    rng = np.random.default_rng(0)
    graphs = [(C, rng.normal(size=(len(C), 18))) for C, _ in rings_and_stars(8)[0]]
    settings = {**QUICK, "recipe": "paper", "epochs": 1}
    settings |= {"num_templates": 8, "template_nodes": 13, "num_layers": 2, "width": 16}
    assert TFGWClassifier(**settings).fit(graphs, [0, 1] * 4).num_parameters_ == 25_099


def test_graphs_are_converted_and_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    converted, prepared = [], []
    convert, preprocess = graphs_module.convert, Preprocessing.__call__

    def counted(self: Preprocessing, dataset: Any) -> Any:
        prepared.append(len(dataset))
        return preprocess(self, dataset)

    monkeypatch.setattr(graphs_module, "convert", lambda *a, **k: converted.append(1) or convert(*a, **k))
    monkeypatch.setattr(Preprocessing, "__call__", counted)
    fitted(epochs=1, validation_fraction=0.25)
    assert (len(converted), sorted(prepared)) == (24, [6, 18])


def test_weights_of_classes_and_graphs() -> None:
    graphs, names = rings_and_stars(12)
    quick = {**QUICK, "epochs": 3}
    plain = TFGWClassifier(**quick).fit(graphs, names).predict_proba(graphs)
    ones = TFGWClassifier(**quick, class_weight={"ring": 2, "star": 2}).fit(graphs, names, np.full(12, 0.5))
    np.testing.assert_array_equal(ones.predict_proba(graphs), plain)
    rings = np.where(names == "ring", 3.0, 1.0)
    by_class = TFGWClassifier(**quick, class_weight={"ring": 3}).fit(graphs, names).predict_proba(graphs)
    by_graph = TFGWClassifier(**quick).fit(graphs, names, sample_weight=rings).predict_proba(graphs)
    np.testing.assert_array_equal(by_class, by_graph)
    assert (by_class[:, 0] > plain[:, 0]).all()  # all graphs look more like rings


def test_a_graph_of_weight_0_is_not_there() -> None:
    graphs, names = rings_and_stars(12)
    weights = np.array([1.0] * 9 + [0.0] * 3)
    quick = {**QUICK, "epochs": 2}
    left_out = TFGWClassifier(**quick).fit(graphs, names, sample_weight=weights)
    np.testing.assert_array_equal(
        left_out.predict_proba(graphs), TFGWClassifier(**quick).fit(graphs[:9], names[:9]).predict_proba(graphs)
    )


def test_balanced_classes_count_only_graphs_to_train_on(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, names = rings_and_stars(24)
    some = [*range(0, 24, 2), 1, 3, 5, 7, 9]  # twelve stars, five rings
    graphs, names, given = [graphs[i] for i in some], names[some], np.array([0.0] + [1.0] * 16)
    totals: list[float] = []

    def observed(model: nn.Module, train: GraphDataset, *others: Any, **options: Any) -> FitResult:
        y, weights = (torch.cat([graph[key] for graph in train]) for key in ("y", "graph_weight"))
        totals[:] = torch.zeros(2, dtype=weights.dtype).index_add_(0, y, weights).tolist()
        return fit(model, train, *others, **options)

    monkeypatch.setattr("tfgw.train.pipeline.fit", observed)
    model = TFGWClassifier(**{**QUICK, "epochs": 1}, class_weight="balanced", validation_fraction=0.25)
    for weights in (None, given):
        model.fit(graphs, names, sample_weight=weights)
        assert totals[0] == pytest.approx(totals[1])


def test_several_labels_have_no_class_weights() -> None:
    graphs, names = rings_and_stars(6)
    y = np.stack([names == "ring", names == "star"], axis=1).astype(int)
    with pytest.raises(ValueError, match="class_weight: requires one class per graph"):
        TFGWClassifier(**QUICK, class_weight="balanced").fit(graphs, y)

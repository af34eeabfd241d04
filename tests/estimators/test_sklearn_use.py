"""What scikit-learn does with estimators: copies, files, pipelines, searches."""

import copy
import io
import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from tests.estimators.small import QUICK, Tuples, as_data, as_networkx, fitted, rings_and_stars
from tfgw.estimators import TFGWClassifier, TFGWRegressor, TFGWTransformer


def through_joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, through_joblib])
def test_copies_predict_identically(copied: Any) -> None:
    graphs, names = rings_and_stars(10, seed=1)
    model = fitted(epochs=3, num_layers=1, width=4)
    np.testing.assert_array_equal(copied(model).predict_proba(graphs), model.predict_proba(graphs))
    regressor = TFGWRegressor(**{**QUICK, "epochs": 2}).fit(graphs, np.arange(10.0))
    np.testing.assert_array_equal(copied(regressor).predict(graphs), regressor.predict(graphs))
    transformer = TFGWTransformer(num_templates=3, random_state=0).fit(graphs, names)
    np.testing.assert_array_equal(copied(transformer).transform(graphs), transformer.transform(graphs))


def test_clone_keeps_parameters_only() -> None:
    model = fitted(epochs=1)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "model_")
    assert copied.set_params(num_templates=7).num_templates == 7


@pytest.mark.parametrize("kind", [list, as_data, as_networkx])
def test_cross_validation_of_a_pipeline(kind: Any) -> None:
    tuples, names = rings_and_stars(24)
    graphs: Tuples = kind(tuples)
    model = make_pipeline(TFGWTransformer(num_templates=6, alpha=0.9, standardize=False, random_state=0), SVC(C=100))
    assert (cross_val_score(model, graphs, names, cv=3) > 0.9).all()


def test_graphs_of_equal_size_stay_tuples() -> None:
    """numpy would make one array of them."""
    graphs, names = rings_and_stars(24, features=5)
    same = [graph for graph in graphs if len(graph[0]) == 5]
    labels = [name for graph, name in zip(graphs, names, strict=True) if len(graph[0]) == 5]
    model = make_pipeline(TFGWTransformer(num_templates=2, alpha=1.0, random_state=0), SVC())
    assert cross_val_score(model, same, labels, cv=2).shape == (2,)


def test_grid_search_over_the_number_of_templates() -> None:
    graphs, names = rings_and_stars(16)
    base = TFGWClassifier(**{**QUICK, "epochs": 5, "alpha": 0.9})
    search = GridSearchCV(base, {"num_templates": [1, 3]}, cv=2).fit(graphs, names)
    assert search.best_params_["num_templates"] in (1, 3)
    assert search.best_estimator_.templates_.features.shape[0] == search.best_params_["num_templates"]
    assert search.predict(graphs).shape == (16,)
    assert search.n_features_in_ == 3


def test_grid_search_prefers_what_can_tell_the_classes_apart() -> None:
    """Without structure (α = 0) rings and stars are the same."""
    graphs, names = rings_and_stars(24)
    pipeline = make_pipeline(TFGWTransformer(num_templates=4, standardize=False, random_state=0), SVC(C=100))
    search = GridSearchCV(pipeline, {"tfgwtransformer__alpha": [0.0, 0.9]}, cv=3).fit(graphs, names)
    assert search.best_params_ == {"tfgwtransformer__alpha": 0.9}


def test_classifier_as_first_step() -> None:
    graphs, names = rings_and_stars(24)
    model = make_pipeline(TFGWClassifier(**QUICK, alpha=0.9, standardize=False), SVC()).fit(graphs, names)
    assert model.score(graphs, names) > 0.9

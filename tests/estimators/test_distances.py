"""Distances and kernels between graphs as a step of a pipeline."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import get_tags

from tests.estimators.small import as_data, as_networkx, rings_and_stars
from tests.ot.ragged_graphs import random_graphs
from tfgw import ot
from tfgw.datasets import shortest_paths
from tfgw.estimators import FGWDistances

PLAIN: dict[str, Any] = {"standardize": False}


def test_distances_are_those_of_all_pairs() -> None:
    tuples, _ = rings_and_stars(9)
    graphs = as_data(tuples)
    model = FGWDistances(alpha=0.3, **PLAIN)
    whole = model.fit_transform(graphs[:6])
    np.testing.assert_array_equal(whole, ot.pairwise(graphs[:6], alpha=0.3).numpy())
    np.testing.assert_array_equal(model.transform(graphs[:6]), whole)
    np.testing.assert_array_equal(model.transform(graphs[4:]), ot.pairwise(graphs[4:], graphs[:6], alpha=0.3).numpy())
    assert model.get_feature_names_out().tolist() == [f"fgwdistances{k}" for k in range(6)]


def test_kernel() -> None:
    tuples, _ = rings_and_stars(7)
    distances = FGWDistances(**PLAIN).fit_transform(tuples)
    np.testing.assert_array_equal(FGWDistances(gamma=0.7, **PLAIN).fit_transform(tuples), np.exp(-0.7 * distances))


@pytest.mark.parametrize("kind", [list, as_data, as_networkx])
def test_kinds_of_graphs(kind: Any) -> None:
    tuples, _ = rings_and_stars(8)
    expected = FGWDistances(**PLAIN).fit_transform(as_data(tuples))
    np.testing.assert_array_equal(FGWDistances(**PLAIN).fit_transform(kind(tuples)), expected)


def test_structures() -> None:
    graphs = random_graphs(sizes=(5, 9, 7, 3))
    for graph in graphs:
        both = np.concatenate([graph.edge_index.numpy(), graph.edge_index.numpy()[::-1]], axis=1)
        graph.edge_index = graph.edge_index.new_tensor(np.unique(both, axis=1))
    found = FGWDistances(structure="shortest_path", canonical_order=False, **PLAIN).fit_transform(graphs)
    for graph in graphs:
        graph.structure = shortest_paths(graph.edge_index, len(graph.x)).double()
    np.testing.assert_array_equal(found, ot.pairwise(graphs, alpha=0.5, canonical=False).numpy())
    precomputed = FGWDistances(structure="precomputed", canonical_order=False, **PLAIN)
    np.testing.assert_array_equal(precomputed.fit_transform(graphs), found)
    directed = random_graphs("directed", sizes=(5, 9, 7, 3))
    with pytest.raises(ValueError, match="graph 0: the structure is not symmetric; use directed=True"):
        FGWDistances().fit(directed)
    assert FGWDistances(directed=True).fit_transform(directed).shape == (4, 4)


def test_renumbered_nodes_change_no_bit() -> None:
    graphs = [nx.cycle_graph(n) for n in (5, 8, 11)] + [nx.star_graph(n) for n in (4, 6, 9)]
    renumbered = [nx.relabel_nodes(graph, dict(zip(graph, reversed(list(graph)), strict=True))) for graph in graphs]
    shuffled = []
    for graph in renumbered:
        copy = nx.Graph()
        copy.add_nodes_from(sorted(graph, key=lambda node: (7 * node) % 12))
        copy.add_edges_from(graph.edges)
        shuffled.append(copy)
    model = FGWDistances(alpha=1.0).fit(graphs)
    np.testing.assert_array_equal(model.transform(shuffled), model.transform(graphs))
    assert (np.diag(model.transform(shuffled)) == 0).all()


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(FGWDistances(alpha=0.9, gamma=10.0, **PLAIN), SVC(kernel="precomputed", C=100)),
        make_pipeline(FGWDistances(alpha=0.9, **PLAIN), KNeighborsClassifier(3, metric="precomputed")),
    ],
)
def test_cross_validation_of_a_pipeline(model: Any) -> None:
    """The pipeline slices graphs, not a matrix of pairs."""
    graphs, names = rings_and_stars(24)
    assert not get_tags(model).input_tags.pairwise
    assert (cross_val_score(model, graphs, names, cv=3) > 0.9).all()


def test_a_search_computes_distances_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, names = rings_and_stars(18)
    pipeline = make_pipeline(FGWDistances(alpha=0.9, **PLAIN), SVC(kernel="precomputed"))
    grid = {"fgwdistances__gamma": [0.1, 10.0], "svc__C": [1, 100]}
    expected = GridSearchCV(pipeline, grid, cv=3).fit(graphs, names)
    pipeline.set_params(fgwdistances__checkpoint=tmp_path / "distances")
    search = GridSearchCV(pipeline, grid, cv=3).fit(graphs, names)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert search.best_params_ == expected.best_params_
    assert (
        len(list((tmp_path / "distances").iterdir())) == 3 * 2 + 1
    )  # within and to each fold's graphs, and the last fit
    monkeypatch.setattr(ot.pair_solver.PairJournal, "append", lambda *_: pytest.fail("solved again"))
    GridSearchCV(pipeline, grid, cv=3).fit(graphs, names)


def test_clone_and_parameters() -> None:
    model = FGWDistances(alpha=0.2, gamma=3.0).fit(rings_and_stars(4)[0])
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "graphs_")
    with pytest.raises(NotFittedError):
        clone(model).transform(rings_and_stars(4)[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -0.1}, r"alpha: must lie in \[0, 1\], got -0.1"),
        ({"gamma": 0.0}, r"gamma: must be positive, got 0.0"),
        ({"n_starts": 0}, r"n_starts: must be at least 1, got 0"),
        ({"start_kinds": ["random"]}, r"start_kinds: 'random' is none of"),
        ({"structure": "random"}, r"structure: must be one of"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FGWDistances(**change).fit(rings_and_stars(4)[0])


def test_other_features_are_refused() -> None:
    model = FGWDistances().fit(rings_and_stars(4, features=3)[0])
    with pytest.raises(ValueError, match="graph 0: 2 features per node, but the estimator was fitted on graphs with 3"):
        model.transform(rings_and_stars(4, features=2)[0])

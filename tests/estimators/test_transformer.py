"""Distances to templates drawn from the data."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from torch_geometric.data import Batch

from tests.estimators.small import adjacency, as_data, rings_and_stars
from tfgw import ot
from tfgw.datasets import skip_circles
from tfgw.estimators import TFGWTransformer


def test_skip_circles_by_the_nearest_neighbour() -> None:
    split = skip_circles(copies=1, seed=0)
    settings = {"num_templates": 10, "alpha": 1.0, "n_starts": 5, "random_state": 0}
    model = make_pipeline(TFGWTransformer(**settings), KNeighborsClassifier(1))
    model.fit(list(split.train), [int(graph.y) for graph in split.train])
    assert model.score(list(split.test), [int(graph.y) for graph in split.test]) == 1.0


def test_distances_are_those_of_the_solver() -> None:
    graphs, _ = rings_and_stars(10)
    settings = {"alpha": 0.3, "standardize": False, "canonical_order": False}
    model = TFGWTransformer(num_templates=3, random_state=0, **settings).fit(graphs)
    batch = Batch.from_data_list(as_data(graphs))
    expected = ot.fgw(ot.GraphBatch(batch.x, batch=batch.batch, edge_index=batch.edge_index), model.templates_, 0.3)
    np.testing.assert_array_equal(model.transform(graphs), expected.distances.numpy())
    assert model.get_feature_names_out().tolist() == [f"tfgwtransformer{k}" for k in range(3)]


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path", "precomputed"])
def test_templates_are_graphs_of_the_data(structure: Any) -> None:
    """Weighted graphs with node weights, all of one size: each template is at distance 0 of the graph it was."""
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(5):
        C = adjacency(nx.gnp_random_graph(7, 0.5, seed=int(rng.integers(100)))) * rng.uniform(0.5, 2, size=(7, 7))
        C = np.triu(C, 1) + np.triu(C, 1).T + (np.diag(rng.normal(size=7)) if structure == "precomputed" else 0)
        graphs.append((C, rng.normal(size=(7, 2)), rng.dirichlet(np.ones(7))))
    model = TFGWTransformer(num_templates=5, structure=structure, n_starts=5, random_state=0)
    distances = model.fit_transform(graphs)
    assert distances.min(0).max() < 1e-6
    assert sorted(distances.argmin(0)) == [0, 1, 2, 3, 4]


def test_other_sizes_and_repetitions_of_weighted_graphs() -> None:
    graphs, _ = rings_and_stars(4)
    weighted = [(2 * C, F) for C, F in graphs]
    for nodes in (2, 9):
        model = TFGWTransformer(num_templates=11, template_nodes=nodes, random_state=0).fit(weighted)
        assert model.templates_.features.shape == (11, nodes, 3)
        distances = model.transform(weighted)
        assert distances.shape == (4, 11)
        assert len(np.unique(distances.round(9), axis=1).T) == 11  # no template twice


def test_classes_share_the_templates() -> None:
    graphs, names = rings_and_stars(16)
    settings = {"num_templates": 2, "template_nodes": 6, "random_state": 0}
    features = TFGWTransformer(**settings, alpha=1.0).fit(graphs, names).templates_
    degrees = features.structure.sum(-1).sort().values
    assert degrees.tolist() == [[2] * 6, [1] * 5 + [5]]  # a ring and a star
    ignored = TFGWTransformer(**settings).fit(graphs, np.linspace(0, 1, 16)).transform(graphs)
    np.testing.assert_array_equal(TFGWTransformer(**settings).fit_transform(graphs), ignored)


def test_standardised_on_the_graphs_of_fit() -> None:
    graphs, _ = rings_and_stars(8)
    scaled = [(C, 1000 * F + 5) for C, F in graphs]
    one, other = (TFGWTransformer(num_templates=3, random_state=0).fit(g).transform(g) for g in (graphs, scaled))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_directed_graphs() -> None:
    graphs = [nx.DiGraph([(0, 1), (1, 2), (2, 0)]), nx.DiGraph([(0, 1), (0, 2), (1, 2)])]
    model = TFGWTransformer(num_templates=2, alpha=1.0, directed=True, n_starts=5, random_state=0).fit(graphs, [0, 1])
    np.testing.assert_allclose(model.transform(graphs).diagonal(), 0, atol=1e-9)


def test_errors() -> None:
    graphs, _ = rings_and_stars(4)
    with pytest.raises(NotFittedError):
        TFGWTransformer().transform(graphs)
    with pytest.raises(ValueError, match="num_templates: must be at least 1"):
        TFGWTransformer(num_templates=0).fit(graphs)
    with pytest.raises(ValueError, match=r"alpha: must be in \[0, 1\]"):
        TFGWTransformer(alpha=2.0).fit(graphs)
    with pytest.raises(ValueError, match="start_kinds: 'random' is none of uniform, anchored, perturbed"):
        TFGWTransformer(start_kinds=["random"]).fit(graphs)
    model = TFGWTransformer(num_templates=2).fit(graphs)
    with pytest.raises(ValueError, match=r"graph 0: 1 features per node, but .* fitted on graphs with 3"):
        model.transform([(C, F[:, :1]) for C, F in graphs])

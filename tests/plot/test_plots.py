"""What is drawn is what the model says."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch_geometric.data import Data

from tests.estimators.small import as_data, fitted, rings_and_stars
from tfgw import plot
from tfgw.datasets import NodeEncoding
from tfgw.datasets.chemistry import bond_orders, label_names
from tfgw.datasets.edge_encoding import EdgeEncoding
from tfgw.estimators import TFGWClassifier
from tfgw.estimators.any_model import open_model
from tfgw.plot.drawing_data import NodeLooks, drawn_graph
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.plot_style import new_figure
from tfgw.plot.template_plot import live_nodes, template_drawing


@pytest.fixture(scope="module")
def classifier() -> TFGWClassifier:
    model = fitted(epochs=3)
    with torch.no_grad():
        weights = model.model_.pool.template_weights
        weights[1] = 0
        weights[1, :3] = torch.tensor([0.5, 0.2, 0.3])
    return model


def texts(figure: Any) -> list[str]:
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_templates_are_drawn_with_their_weights(classifier: TFGWClassifier) -> None:
    figure = plot.templates(classifier)
    assert [axis.get_title() for axis in figure.axes] == [f"template {k}" for k in (1, 2, 3, 4)]
    sizes = figure.axes[1].collections[-1].get_sizes()
    np.testing.assert_allclose(sizes / sizes[0], [1, 0.4, 0.6])
    assert live_nodes(open_model(classifier), 1).tolist() == [0, 1, 2]


def test_opacity_is_structure(classifier: TFGWClassifier) -> None:
    opened = open_model(classifier)
    drawing = template_drawing(opened, 0, NodeLooks(opened, np.zeros((0, 3))))
    C = classifier.templates_.structure[0].numpy()
    np.testing.assert_allclose(drawing.strengths, C[drawing.links[0], drawing.links[1]])
    assert drawing.links.shape[1] == (np.triu(C, 1) > 0.02).sum()


def test_templates_beside_their_nearest_graphs(classifier: TFGWClassifier) -> None:
    graphs, _ = rings_and_stars(9, seed=2)
    figure = plot.templates(classifier, graphs=graphs, numbers=[2, 0])
    nearest = classifier.transform(graphs).argmin(axis=0)
    titles = [axis.get_title() for axis in figure.axes]
    assert [title.split(",")[0] for title in titles] == [
        "template 3",
        f"graph {nearest[2]}",
        "template 1",
        f"graph {nearest[0]}",
    ]


def test_links_of_a_matching_are_the_plan(classifier: TFGWClassifier) -> None:
    graph = as_data(rings_and_stars(1, seed=3)[0])[0]
    figure = plot.matching(classifier, graph, template=1)
    solved = classifier.model_.pool.solve(graph.x, graph.edge_index)
    share = solved.plans[:, 1] * graph.num_nodes
    links = [patch for patch in figure.axes[0].patches if patch.zorder == 0.2]
    assert sum(len(patch.get_path()) for patch in links) == 2 * int((share >= 0.15).sum())
    with pytest.raises(ValueError, match="template: must be from 0 to 3, got 4"):
        plot.matching(classifier, graph, template=4)


def test_the_map_is_a_pca_of_the_distances(classifier: TFGWClassifier) -> None:
    graphs, names = rings_and_stars(14, seed=4)
    figure = plot.embedding(classifier, graphs, names)
    distances = classifier.transform(graphs)
    expected = PCA(2).fit_transform(distances)
    found = {c.get_label(): np.asarray(c.get_offsets()) for c in figure.axes[0].collections}
    for name in ("ring", "star"):
        np.testing.assert_allclose(found[name], expected[names == name], atol=1e-12)
    assert plot.embedding(classifier, graphs, method="tsne").axes[0].get_xlabel() == "t-SNE 1"
    with pytest.raises(ValueError, match="labels: got 3 labels for 14 graphs"):
        plot.embedding(classifier, graphs, names[:3])
    with pytest.raises(ValueError, match="method: must be"):
        plot.embedding(classifier, graphs, method="umap")


def test_curves_are_the_history(classifier: TFGWClassifier) -> None:
    figure = plot.curves(classifier)
    assert [axis.get_title() for axis in figure.axes][:2] == ["loss", "score"]
    (line,) = figure.axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), [record.loss for record in classifier.history_])
    with pytest.raises(ValueError, match="no epochs"):
        plot.curves([])


def test_names_are_text_whatever_they_are() -> None:
    """Dollar signs are no formula, and nothing is cut from the counts."""
    names = ["$\\frac{", "<b>", "ok"]
    figure = plot.confusion(names + names[:1], [names[0], names[2], names[2], names[0]], labels=names)
    assert [text for text in texts(figure) if text != "0"] == ["2", "1", "1"]
    figure.savefig("/dev/null", format="svg")


def test_labels_may_be_tensors() -> None:
    """As ``dataset.y`` is: the names are those of the values."""
    true, predicted = torch.tensor([3, 5, 5]), np.array([3, 5, 3])
    figure = plot.confusion(true, predicted)
    assert [text for text in texts(figure) if text != "0"] == ["1", "1", "1"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["3", "5"]

    graphs, _ = rings_and_stars(3, seed=4)
    (legend,) = [axis.get_legend() for axis in plot.embedding(fitted(epochs=1), graphs, true).axes]
    assert [text.get_text() for text in legend.get_texts()] == ["3", "5"]


MOLECULE = NodeEncoding(
    features="labels", vocabulary=((0, 1, 2, 3, 4, 5, 6),), edges=EdgeEncoding(vocabulary=((0, 1, 2, 3),))
)


def test_molecules_have_symbols_and_bond_orders() -> None:
    """Nitrobenzene as MUTAG has it."""
    opened = open_model(fitted(epochs=1))._replace(encoding=MOLECULE, dataset="MUTAG")
    labels, edges = [0, 0, 0, 0, 0, 0, 1, 2, 2], [*((i, (i + 1) % 6) for i in range(6)), (0, 6), (6, 7), (6, 8)]
    bonds = [0] * 6 + [1, 2, 2]
    both = torch.tensor(edges + [(b, a) for a, b in edges]).T
    graph = Data(x=torch.eye(7)[labels], edge_index=both, edge_attr=torch.eye(4)[bonds + bonds])
    drawing = drawn_graph(graph, NodeLooks(opened, graph.x.numpy()))
    assert drawing.names == ("C",) * 6 + ("N", "O", "O")
    assert sorted(drawing.orders) == [1] + [1.5] * 6 + [2, 2]
    figure, axes = new_figure()
    draw_graph(axes[0, 0], drawing)
    assert texts(figure) == list(drawing.names)
    lines = sum(len(patch.get_path()) // 2 for patch in axes[0, 0].patches)
    assert lines == 1 + 2 * 6 + 2 * 2


def test_names_of_labels() -> None:
    assert label_names("PTC", (5, 3, 17)) == ("C", "N", "Ca")  # an alias of PTC_MR
    assert label_names("NCI1", (5, 3)) == ("5", "3")
    assert label_names("MUTAG", (5, 7)) == ("5", "7")  # not MUTAG's labels
    assert bond_orders("PTC_MR", (0, 3)) == (3, 1.5)
    assert bond_orders("NCI1", (0,)) is None
    assert bond_orders("mine", ("aromatic", "dative", "triple")) == (1.5, 1, 3)
    assert bond_orders("mine", ("likes", "knows")) is None


def test_signed_values_have_two_colours(classifier: TFGWClassifier) -> None:
    opened = open_model(classifier)
    drawing = template_drawing(opened, 0, NodeLooks(opened, np.zeros((0, 3))))
    axes = new_figure()[1]
    values = np.linspace(-1, 2, len(drawing.names))
    draw_graph(axes[0, 0], drawing, node_values=values, link_values=np.ones(drawing.links.shape[1]))
    discs = [c for c in axes[0, 0].collections if c.zorder == 1]
    assert [len(c.get_offsets()) for c in discs] == [(values > 0.04).sum(), (values < -0.04).sum()]
    assert len({tuple(c.get_facecolor()[0]) for c in discs}) == 2
    (lines,) = [c for c in axes[0, 0].collections if c.zorder == 0.5]
    np.testing.assert_allclose(lines.get_linewidths(), 9 / 2)  # half of the largest value, which a node has


def test_graphs_with_a_model_of_their_own_encoding(classifier: TFGWClassifier) -> None:
    """A trained model without an encoding colours by features."""
    assert NodeLooks(open_model(classifier), np.ones((4, 3))).legend == "the same for all nodes"
    assert NodeLooks(open_model(classifier), np.eye(3)).legend == "first principal component of the features"
    encoded = dataclasses.replace(classifier.trained_, encoding=MOLECULE, source={"dataset": "MUTAG"})
    assert NodeLooks(open_model(encoded), np.eye(7)).legend == "element"

"""Explanations of kernel machines: sums at every level, known answers, node orders, and what is refused."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, Explanation

import tfgw
from tests.estimators.small import rings_and_stars
from tests.estimators.test_kernel_machine import labelled, molecules
from tests.explanations.test_explain import CONFIG, MASKS, symmetric_graphs
from tfgw import plot
from tfgw.datasets import CanonicalOrder
from tfgw.datasets.canonical import reordered
from tfgw.estimators import TFGWKernelClassifier, TFGWKernelRegressor
from tfgw.explanations import MaskableModel, Reference, TFGWExplainer
from tfgw.explanations import weighted_costs as module
from tfgw.nn.refinement import averaged_degrees, label_codes, refined_labels

SMALL: dict[str, Any] = {"levels": (0, 2), "alphas": (0.0, 0.7), "accelerator": "cpu"}
CLOSE = {"rtol": 0, "atol": 1e-9}


@pytest.fixture(scope="module", params=["scores", "distances"])
def classifier(request: pytest.FixtureRequest) -> TFGWKernelClassifier:
    return TFGWKernelClassifier(**SMALL, combine=request.param).fit(*molecules(23))


def check_sums(found: Explanation) -> None:
    whole = found.score - found.reference_score
    torch.testing.assert_close(found.training_contributions.sum(), whole, **CLOSE)
    torch.testing.assert_close(found.templates.sum() + found.rest, whole, **CLOSE)
    torch.testing.assert_close(found.kinds.sum(1), found.templates, **CLOSE)
    torch.testing.assert_close(found.template_structure + found.template_features, found.templates, **CLOSE)
    torch.testing.assert_close(found.node_structure.sum(1), found.template_structure, **CLOSE)
    torch.testing.assert_close(found.node_features.sum(1), found.template_features, **CLOSE)
    torch.testing.assert_close((found.node_rest_structure + found.node_rest_features).sum(), found.rest, **CLOSE)
    torch.testing.assert_close(found.node_mask.sum(), whole, **CLOSE)
    structure = found.template_structure.sum() + found.node_rest_structure.sum()
    torch.testing.assert_close(found.edge_mask.sum() + found.node_absent_links.sum(), structure, **CLOSE)


@pytest.mark.parametrize("top", [1, 7, 23, 99])
def test_sums_are_exact_for_any_number_of_listed_graphs(classifier: TFGWKernelClassifier, top: int) -> None:
    others, _ = molecules(5, seed=1)
    for graph, odds in zip(others, classifier.decision_function(others), strict=True):
        found = tfgw.explain(classifier, graph, target="linked", top=top)  # the second of apart, linked
        assert float(found.score) == odds
        check_sums(found)
        listed = min(top, 23)
        sizes = found.templates.abs()
        assert (sizes.diff() <= 0).all()
        assert sorted(sizes.tolist()) == sorted(found.training_contributions.abs().sort().values[-listed:].tolist())
        torch.testing.assert_close(found.training_contributions[found.training_graphs], found.templates, **CLOSE)


def test_weights_of_nodes_and_edges_and_real_values() -> None:
    rng = np.random.default_rng(0)
    graphs, classes = molecules(15)
    for graph in graphs:
        h, one_way = rng.random(graph.num_nodes) + 0.2, rng.random((graph.num_nodes,) * 2)
        graph.node_weights = torch.from_numpy(h / h.sum())
        graph.edge_weight = torch.from_numpy((one_way + one_way.T)[tuple(graph.edge_index.numpy())])
        graph.x = torch.from_numpy(rng.normal(size=(graph.num_nodes, 3)))
    model = TFGWKernelClassifier(**SMALL).fit(graphs[:11], classes[:11])
    assert model.model_.config.features == "averages"
    for graph in graphs[11:]:
        check_sums(tfgw.explain(model, graph, top=4))


def test_contributions_by_hand() -> None:
    """One kind of distance, α = 0.4, level 0, against the formulas, for the nodes of two small graphs."""
    graphs, classes = molecules(6)
    model = TFGWKernelClassifier(levels=(0,), alphas=(0.4,), degrees=False, accelerator="cpu").fit(graphs, classes)

    graph = labelled(nx.path_graph(3), [0, 2, 1])  # no symmetry
    found = tfgw.explain(model, graph, target="linked", top=6)
    kernel = model.model_
    factor = float(kernel.factor)
    for place, number in enumerate(found.training_graphs.tolist()):
        a = factor * float(kernel.coefficients[0, number, 1] - kernel.coefficients[0, number, 0])
        gamma, start = float(kernel.rates[0, 0]), float(kernel.mean_distances[0, number])
        other, T = kernel.training_graph(number), found.plans[place, 0, :, : kernel.training_graph(number).num_nodes]
        C, C_bar = (torch.zeros(g.num_nodes, g.num_nodes).double() for g in (graph, other))
        C[tuple(graph.edge_index)], C_bar[tuple(other.edge_index)] = 1, 1
        differ = (graph.x[:, None] != other.x).any(-1)

        F, F_bar = (label_codes(refined_labels(g.x, g.edge_index, 0)) for g in (graph, other))
        M = (F[:, None] - F_bar).square().sum(-1)
        assert ((M > 0.5) == differ).all()
        structure = [sum(T[i, p] * T[j, q] * (C[i, j] - C_bar[p, q]) ** 2 for j in range(3)
                         for p in range(len(C_bar)) for q in range(len(C_bar))) for i in range(3)]  # fmt: skip
        features = (T * M).sum(1)
        distance = float(0.4 * sum(structure) + 0.6 * features.sum())
        assert float(found.distances[place, 0]) == pytest.approx(distance, abs=1e-12)
        contribution = a * (np.exp(-gamma * distance) - np.exp(-gamma * start))
        assert float(found.templates[place]) == pytest.approx(contribution, abs=1e-9)
        slope = contribution / (distance - start)
        share = 0.4 * float(sum(structure)) / distance
        for node in range(3):
            by_structure = slope * (0.4 * float(structure[node]) - share * start / 3)
            by_features = slope * (0.6 * float(features[node]) - (1 - share) * start / 3)
            assert float(found.node_structure[place, node]) == pytest.approx(by_structure, abs=1e-9)
            assert float(found.node_features[place, node]) == pytest.approx(by_features, abs=1e-9)


def test_a_training_graph_that_is_the_graph_itself(classifier: TFGWKernelClassifier) -> None:
    """Its distance is 0, its plan is the identity, and nodes share the reference by weight."""
    graph = molecules(23)[0][4]
    found = tfgw.explain(classifier, graph, top=23)
    check_sums(found)
    place = found.training_graphs.tolist().index(4)
    assert found.distances[place].abs().max() == 0
    n = graph.num_nodes
    shares = found.node_features[place] + found.node_structure[place]
    torch.testing.assert_close(shares, found.templates[place].expand(n) / n, **CLOSE)


def test_equal_training_graphs_contribute_equally() -> None:
    graphs, classes = molecules(11)
    graphs.append(graphs[2].clone())
    model = TFGWKernelClassifier(**SMALL).fit(graphs, [*classes, "linked" if classes[2] == "apart" else "apart"])
    found = tfgw.explain(model, molecules(1, seed=2)[0][0], top=12)
    check_sums(found)
    assert float(found.training_contributions[2]) == float(found.training_contributions[11]) != 0


def test_the_graph_as_its_own_reference_contributes_nothing(classifier: TFGWKernelClassifier) -> None:
    (graph,), others = molecules(1, seed=2)[0], molecules(4, seed=3)[0]
    found = tfgw.explain(classifier, graph, reference=[graph])
    assert float(found.reference_score) == pytest.approx(float(found.score), abs=1e-12)
    for part in (found.training_contributions, found.template_structure, found.template_features):
        torch.testing.assert_close(part, torch.zeros_like(part), **CLOSE)
    against = tfgw.explain(classifier, graph, reference=others)
    check_sums(against)
    assert float(against.reference_score) != pytest.approx(float(found.reference_score), abs=1e-6)


def test_the_default_reference_is_the_mean_over_the_training_graphs(classifier: TFGWKernelClassifier) -> None:
    graph = molecules(1, seed=2)[0][0]
    implicit = tfgw.explain(classifier, graph)
    explicit = tfgw.explain(classifier, graph, reference=molecules(23)[0])
    torch.testing.assert_close(explicit.node_mask, implicit.node_mask, **CLOSE)


@pytest.mark.parametrize("number", range(5))
def test_renumbering_nodes_renumbers_the_explanation(number: int, seed: int) -> None:
    model = TFGWKernelClassifier(**SMALL).fit(*rings_and_stars(9))
    symmetric = symmetric_graphs()
    graph = [*symmetric, *(Data(x=g.x[:, :3], edge_index=g.edge_index) for g in symmetric[:2])][number]
    order = torch.from_numpy(np.random.default_rng(seed).permutation(graph.num_nodes))
    other = reordered(Data(x=graph.x, edge_index=graph.edge_index), order)
    here, there = tfgw.explain(model, graph, top=4), tfgw.explain(model, other, top=4)
    assert there.training_graphs.tolist() == here.training_graphs.tolist()
    torch.testing.assert_close(there.node_mask, here.node_mask[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(there.node_features, here.node_features[:, order], rtol=0, atol=1e-12)
    torch.testing.assert_close(there.node_rest_structure, here.node_rest_structure[order], rtol=0, atol=1e-12)
    of_pair = {tuple(pair): value for pair, value in zip(here.edge_index.T.tolist(), here.edge_mask, strict=True)}
    expected = torch.stack([of_pair[tuple(order[pair].tolist())] for pair in there.edge_index.T])
    torch.testing.assert_close(there.edge_mask, expected, rtol=0, atol=1e-12)


def test_nodes_of_equal_role_share(classifier: TFGWKernelClassifier) -> None:

    found = tfgw.explain(classifier, labelled(nx.star_graph(4), [2, 1, 1, 1, 0]))
    leaves = found.node_mask[1:4, 0]
    torch.testing.assert_close(leaves, leaves[:1].expand(3), rtol=0, atol=1e-12)
    assert float((found.node_mask[4] - found.node_mask[1]).abs()) > 1e-6


def test_plans_are_in_the_order_of_the_given_graph(classifier: TFGWKernelClassifier) -> None:
    """Rows sum to the weights of nodes; features of matched nodes, in the given order, have the solver's cost."""
    graph = molecules(1, seed=7)[0][0]
    found = tfgw.explain(classifier, graph, top=3)
    n = graph.num_nodes
    torch.testing.assert_close(
        found.plans.sum(3), torch.full((3, 6, n), 1 / n, dtype=torch.float64), rtol=0, atol=1e-12
    )

    for place, number in enumerate(found.training_graphs.tolist()):
        other = classifier.model_.training_graph(number)
        F, F_bar = (refined_labels(g.x, g.edge_index, 2) for g in (graph, other))
        M = (F[:, None] != F_bar).double().mean(-1)
        cost = (found.plans[place, 2, :, : len(F_bar)] * M).sum()  # level 2, α = 0
        assert float(cost) == pytest.approx(float(found.distances[place, 2]), abs=1e-12)
        D, D_bar = (averaged_degrees(g.edge_index, g.num_nodes, 2) for g in (graph, other))
        cost = (found.plans[place, 5, :, : len(D_bar)] * torch.cdist(D, D_bar)).sum()  # level 2, degrees
        assert float(cost) == pytest.approx(float(found.distances[place, 5]), abs=1e-9)


def test_chunks_change_nothing(classifier: TFGWKernelClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = molecules(1, seed=2)[0][0]
    whole = tfgw.explain(classifier, graph)
    monkeypatch.setattr(module, "ENTRIES", 300)
    parts = tfgw.explain(classifier, graph)
    torch.testing.assert_close(parts.node_mask, whole.node_mask, rtol=0, atol=1e-12)
    torch.testing.assert_close(parts.edge_mask, whole.edge_mask, rtol=0, atol=1e-12)


def test_values_are_explained_on_the_scale_of_the_machine() -> None:
    graphs, _ = molecules(20)
    targets = np.array([[float(g.num_nodes), -3.0 * float(g.x[:, 2].sum())] for g in graphs])
    model = TFGWKernelRegressor(**SMALL).fit(graphs[:16], targets[:16])
    found = tfgw.explain(model, graphs[17], target=1)
    check_sums(found)
    scaled = model.target_scaler_.transform(model.predict(graphs[17:18]))[0, 1]
    assert float(found.score) == pytest.approx(scaled, abs=1e-9)


def test_all_kinds_of_models_agree(classifier: TFGWKernelClassifier, tmp_path: Path) -> None:
    graph = molecules(1, seed=2)[0][0]
    expected = tfgw.explain(classifier, graph)
    classifier.save(tmp_path / "m.safetensors")
    loaded = tfgw.load_model(tmp_path / "m.safetensors")
    ordered = CanonicalOrder()(graph)
    for model, given in ((classifier.trained_, graph), (loaded, graph), (classifier.model_, ordered)):
        found = tfgw.explain(model, given)
        torch.testing.assert_close(found.templates, expected.templates, **CLOSE)
    assert classifier.classes_[expected.target] == classifier.predict([graph])[0]
    single = graph.clone()
    single.x = single.x.float()
    torch.testing.assert_close(tfgw.explain(classifier, single).node_mask, expected.node_mask, **CLOSE)


def test_masks_of_pytorch_geometric(classifier: TFGWKernelClassifier) -> None:
    graphs = [CanonicalOrder()(graph) for graph in molecules(2, seed=5)[0]]
    batch = Batch.from_data_list([Data(x=g.x, edge_index=g.edge_index) for g in graphs])
    explainer = Explainer(classifier.model_, TFGWExplainer(scaled=False), model_config=CONFIG, **MASKS)
    together = explainer(batch.x, batch.edge_index, batch=batch.batch)
    apart = [tfgw.explain(classifier.model_, graph) for graph in graphs]
    torch.testing.assert_close(together.node_mask, torch.cat([one.node_mask for one in apart]), **CLOSE)
    torch.testing.assert_close(together.edge_mask, torch.cat([one.edge_mask for one in apart]), **CLOSE)


def test_what_is_refused(classifier: TFGWKernelClassifier) -> None:
    graph = molecules(1)[0][0]
    with pytest.raises(ValueError, match="top: must be at least 1, got 0"):
        tfgw.explain(classifier, graph, top=0)
    with pytest.raises(ValueError, match="reference: a kernel machine needs graphs"):
        tfgw.explain(classifier, graph, reference=Reference(torch.zeros(1), torch.zeros(0)))
    with pytest.raises(ValueError, match="target: must be one of apart, linked"):
        tfgw.explain(classifier, graph, target="ring")
    with pytest.raises(ValueError, match="kernel machine"):
        MaskableModel(classifier.model_)
    with pytest.raises(ValueError, match="has no learned templates"):
        plot.templates(classifier)

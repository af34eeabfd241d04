"""``tfgw.explain`` of every kind of model: targets, node orders, and what PyTorch Geometric makes of it."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, Explanation, GNNExplainer
from torch_geometric.explain.metric import fidelity, unfaithfulness

import tfgw
from tests.estimators.small import QUICK, as_data, as_networkx, fitted, rings_and_stars
from tests.explanations.random_models import inputs_of, random_graph, random_model
from tfgw.datasets.canonical import reordered
from tfgw.estimators import TFGWClassifier, TFGWRegressor
from tfgw.explanations import MaskableModel, TFGWExplainer
from tfgw.nn import Ensemble

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
MASKS = {"explanation_type": "model", "node_mask_type": "object", "edge_mask_type": "object"}


@pytest.fixture(scope="module")
def classifier() -> TFGWClassifier:
    return fitted(epochs=8, num_layers=1)


def whole(explanation: Explanation) -> float:
    return float(explanation.score - explanation.reference_score)


def test_the_score_of_two_classes_is_the_log_odds(classifier: TFGWClassifier) -> None:
    graphs, _ = rings_and_stars(6, seed=1)
    for graph, odds in zip(graphs, classifier.decision_function(graphs), strict=True):
        explanation = tfgw.explain(classifier, graph, target="star")  # the second of ring, star
        assert explanation.validate()
        assert float(explanation.score) == pytest.approx(odds, abs=1e-12)
        assert float(explanation.node_mask.sum()) == pytest.approx(whole(explanation), abs=1e-9)
        against = tfgw.explain(classifier, graph, target="ring")
        torch.testing.assert_close(against.node_mask, -explanation.node_mask, rtol=0, atol=1e-12)


def test_the_predicted_class_is_explained(classifier: TFGWClassifier) -> None:
    graphs, _ = rings_and_stars(4, seed=1)
    for graph, label in zip(graphs, classifier.predict(graphs), strict=True):
        assert classifier.classes_[tfgw.explain(classifier, graph).target] == label


def test_all_kinds_of_models_and_graphs_agree(classifier: TFGWClassifier) -> None:
    graphs, _ = rings_and_stars(3, seed=1)
    expected = tfgw.explain(classifier, graphs[2])
    for model, graph in (
        (classifier, as_data(graphs)[2]),
        (classifier, as_networkx(graphs)[2]),
        (classifier.trained_, as_data(graphs)[2]),
    ):
        found = tfgw.explain(model, graph)
        torch.testing.assert_close(found.node_mask, expected.node_mask, rtol=0, atol=1e-9)
        torch.testing.assert_close(found.templates, expected.templates, rtol=0, atol=1e-9)


def symmetric_graphs() -> list[Data]:
    """A ring of six with two equal arms, a star, a prism: nodes that a symmetry exchanges, with equal features."""
    arms = nx.cycle_graph(6)
    arms.add_edges_from([(0, 6), (3, 7)])
    graphs = []
    for graph in (arms, nx.star_graph(4), nx.circular_ladder_graph(3)):
        C = torch.from_numpy(nx.to_numpy_array(graph))
        graphs.append(Data(x=C.sum(1, keepdim=True) * torch.ones(1, 3), edge_index=C.nonzero().T.contiguous()))
    return graphs


@pytest.mark.parametrize("number", range(5))
def test_renumbering_nodes_renumbers_the_explanation(classifier: TFGWClassifier, number: int, seed: int) -> None:
    graph = [*symmetric_graphs(), *as_data(rings_and_stars(2, seed=5)[0])][number]
    order = torch.from_numpy(np.random.default_rng(seed).permutation(graph.num_nodes))
    other = reordered(Data(x=graph.x, edge_index=graph.edge_index), order)
    here, there = tfgw.explain(classifier, graph), tfgw.explain(classifier, other)
    torch.testing.assert_close(there.node_mask, here.node_mask[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(there.node_structure, here.node_structure[:, order], rtol=0, atol=1e-12)
    of_pair = {tuple(pair): value for pair, value in zip(here.edge_index.T.tolist(), here.edge_mask, strict=True)}
    expected = torch.stack([of_pair[tuple(order[pair].tolist())] for pair in there.edge_index.T])
    torch.testing.assert_close(there.edge_mask, expected, rtol=0, atol=1e-12)


def test_plans_are_in_the_order_of_the_given_graph(classifier: TFGWClassifier) -> None:
    """Feature costs at the plans, computed from the given graph, are the solver's."""
    graph = as_data(rings_and_stars(1, seed=5)[0])[0]
    found = tfgw.explain(classifier, graph)
    with torch.no_grad():
        encoded = classifier.model_.encoder(graph.x, graph.edge_index)
        costs = (encoded[:, None, None] - classifier.model_.pool.template_features).square().sum(-1)
        solved = classifier.model_.pool.solve(encoded, graph.edge_index)
    torch.testing.assert_close((found.plans * costs).sum((0, 2)), solved.feature_costs[0], rtol=0, atol=1e-9)


def test_values_and_several_labels() -> None:
    graphs, names = rings_and_stars(12)
    sizes = np.array([len(C) for C, _ in graphs], dtype=float)
    values = TFGWRegressor(**{**QUICK, "epochs": 2}).fit(graphs, np.stack([sizes, -sizes], axis=1))
    explanation = tfgw.explain(values, graphs[0], target=1)
    scaled = values.target_scaler_.transform(values.predict(graphs[:1]))[0, 1]
    assert float(explanation.score) == pytest.approx(scaled, abs=1e-9)
    labels = TFGWClassifier(**{**QUICK, "epochs": 2}).fit(graphs, np.stack([names == "ring", sizes > 5], axis=1) * 1)
    explanation = tfgw.explain(labels, graphs[0], target=1)
    assert float(explanation.score) == pytest.approx(labels.decision_function(graphs[:1])[0, 1], abs=1e-9)
    assert float(explanation.node_mask.sum()) == pytest.approx(whole(explanation), abs=1e-9)


def test_reference_graphs(classifier: TFGWClassifier) -> None:
    graphs, _ = rings_and_stars(5, seed=1)
    found = tfgw.explain(classifier, graphs[0], reference=graphs[1:])
    assert float(found.node_mask.sum()) == pytest.approx(whole(found), abs=1e-9)
    assert whole(found) != pytest.approx(whole(tfgw.explain(classifier, graphs[0])), abs=1e-6)


def test_wrong_arguments(classifier: TFGWClassifier) -> None:
    graph = rings_and_stars(1)[0][0]
    with pytest.raises(ValueError, match="target: must be one of ring, star, got 'clique'"):
        tfgw.explain(classifier, graph, target="clique")
    with pytest.raises(ValueError, match="graph: expected a Data"):
        tfgw.explain(classifier.trained_, graph)
    with pytest.raises(ValueError, match="target: must be from 0 to 2, got 3"):
        tfgw.explain(random_model("sum", seed=0), random_graph(torch.Generator().manual_seed(0)), target=3)
    with pytest.raises(ValueError, match="model: expected a trained model"):
        tfgw.explain(TFGWClassifier(), graph)


def test_masks_of_a_batch_are_those_of_its_graphs(seed: int) -> None:
    generator, model = torch.Generator().manual_seed(seed), random_model("sum", seed=seed)
    graphs = [Data(x=g.x, edge_index=g.edge_index) for g in (random_graph(generator, nodes=n) for n in (4, 7, 9))]
    batch = Batch.from_data_list(graphs)
    explainer = Explainer(model, TFGWExplainer(scaled=False), model_config=CONFIG, **MASKS)
    together = explainer(batch.x, batch.edge_index, batch=batch.batch)
    apart = [tfgw.explain(model, graph) for graph in graphs]
    torch.testing.assert_close(together.node_mask, torch.cat([one.node_mask for one in apart]), rtol=0, atol=1e-9)
    torch.testing.assert_close(together.edge_mask, torch.cat([one.edge_mask for one in apart]), rtol=0, atol=1e-9)
    second = explainer(batch.x, batch.edge_index, batch=batch.batch, index=1)
    assert second.node_mask[batch.batch != 1].abs().max() == 0
    torch.testing.assert_close(second.node_mask[batch.batch == 1], apart[1].node_mask, rtol=0, atol=1e-9)


def test_masks_of_an_ensemble_are_means_of_its_networks(seed: int) -> None:
    members = [random_model("sum", seed=seed + number) for number in range(2)]
    data = random_graph(torch.Generator().manual_seed(seed), nodes=6)
    inputs = {"x": data.x, "edge_index": data.edge_index}
    explainer = Explainer(
        MaskableModel(Ensemble(members).eval()), TFGWExplainer(scaled=False), model_config=CONFIG, **MASKS
    )
    together = explainer(**inputs)
    apart = [tfgw.explain(member, Data(**inputs), target=int(together.target)) for member in members]
    expected = torch.stack([one.node_mask for one in apart]).mean(0)
    torch.testing.assert_close(together.node_mask, expected, rtol=0, atol=1e-9)


def test_metrics_of_pytorch_geometric(seed: int) -> None:
    generator, model = torch.Generator().manual_seed(seed), MaskableModel(random_model("sum", seed=seed))
    data = random_graph(generator, nodes=8)
    for algorithm in (TFGWExplainer(), GNNExplainer(epochs=3)):
        explainer = Explainer(model.float(), algorithm, model_config=CONFIG, **MASKS)
        explanation = explainer(data.x.float(), data.edge_index)
        for mask in (explanation.node_mask, explanation.edge_mask):
            assert 0 <= float(mask.min()) <= float(mask.max()) <= 1
        assert all(0 <= value <= 1 for value in fidelity(explainer, explanation))
        assert 0 <= unfaithfulness(explainer, explanation) <= 1


def test_masks_act_on_edges() -> None:
    """Masks of 1 change nothing; masks of 0 are a graph without edges."""
    data, model = random_graph(torch.Generator().manual_seed(1), nodes=7), random_model("sum", seed=1)
    explainer = Explainer(MaskableModel(model), TFGWExplainer(), model_config=CONFIG, **MASKS)
    ones = torch.ones(data.num_edges, dtype=torch.float64)
    with torch.no_grad():
        expected, empty = model(data.x, data.edge_index), model(data.x, data.edge_index[:, :0])
    found = explainer.get_masked_prediction(data.x, data.edge_index, None, ones)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    found = explainer.get_masked_prediction(data.x, data.edge_index, None, 0 * ones)
    torch.testing.assert_close(found, empty, rtol=0, atol=1e-9)


def test_what_the_algorithm_does_not_support() -> None:
    with pytest.raises(ValueError, match="does not support"):
        Explainer(random_model("sum", seed=0), TFGWExplainer(), model_config={**CONFIG, "task_level": "node"}, **MASKS)
    with pytest.raises(ValueError, match="edges cannot be masked"):
        MaskableModel(random_model("paths", seed=0))
    inputs = inputs_of(random_graph(torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="expected a TFGWModel"):
        Explainer(torch.nn.Linear(4, 2).double(), TFGWExplainer(), model_config=CONFIG, explanation_type="phenomenon",
                  node_mask_type="object")(inputs["x"], inputs["edge_index"], target=torch.tensor([0]))  # fmt: skip


def test_an_ensemble_is_explained_by_the_mean_of_its_networks() -> None:
    graphs, names = rings_and_stars(16)
    model = TFGWClassifier(**{**QUICK, "n_estimators": 3, "num_layers": 1, "epochs": 5}).fit(graphs, names)
    for graph, odds, label in zip(graphs[:4], model.decision_function(graphs), model.predict(graphs), strict=False):
        explanation = tfgw.explain(model, graph)
        assert model.classes_[explanation.target] == label
        assert float(explanation.score) == pytest.approx(odds if label == "star" else -odds, abs=1e-12)
        assert explanation.templates.shape == (3 * QUICK["num_templates"],)
        assert float(explanation.templates.sum() + explanation.readout) == pytest.approx(whole(explanation), abs=1e-9)
        assert float(explanation.node_mask.sum()) == pytest.approx(whole(explanation), abs=1e-9)
    against = tfgw.explain(model, graphs[0], reference=graphs[1:])
    assert float(against.node_mask.sum()) == pytest.approx(whole(against), abs=1e-9)

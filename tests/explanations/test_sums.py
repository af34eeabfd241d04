"""Contributions add up at every level, for every kind of model, and are those of the formulas.

``TFGW_EXPLAINED=1000`` takes a thousand graphs for each kind of model.
"""

import os

import pytest
import torch

from tests.explanations.random_models import KINDS, inputs_of, random_graph, random_model
from tfgw.datasets import GraphDataset
from tfgw.explanations import Reference
from tfgw.explanations.attribution import Attribution, attribute
from tfgw.explanations.plan_costs import dense_structure, plan_costs

GRAPHS = int(os.environ.get("TFGW_EXPLAINED", "5"))
CLOSE = {"rtol": 0, "atol": 1e-9}


def check_sums(found: Attribution) -> None:
    whole = found.score - found.reference_score
    torch.testing.assert_close(found.templates.sum() + found.readout, whole, **CLOSE)
    torch.testing.assert_close(found.template_structure + found.template_features, found.templates, **CLOSE)
    torch.testing.assert_close(found.node_structure.sum(1), found.template_structure, **CLOSE)
    torch.testing.assert_close(found.node_features.sum(1), found.template_features, **CLOSE)
    torch.testing.assert_close(found.node_readout.sum(), found.readout, **CLOSE)
    torch.testing.assert_close(found.nodes.sum(), whole, **CLOSE)
    links = found.edges.sum() + found.node_absent_links.sum()
    torch.testing.assert_close(links, found.template_structure.sum(), **CLOSE)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_exact(kind: str, task: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for number in range(GRAPHS):
        model = random_model(kind, seed=number)
        inputs = inputs_of(random_graph(generator, matrix=kind == "matrices"))
        found = attribute(model, inputs, task=task, target=number % 3)
        outputs = model(**inputs)[0].detach()
        others = (outputs.sum() - outputs[number % 3]) / 2 if task == "classification" else 0
        torch.testing.assert_close(found.score, outputs[number % 3] - others, rtol=1e-12, atol=1e-12)
        check_sums(found)


@pytest.mark.parametrize("kind", ["sum", "roots", "paths"])
def test_a_mean_of_graphs_as_reference(kind: str, seed: int) -> None:
    """Its score is that of the mean readout, and sums are exact again; a graph of its own contributes nothing."""
    generator, model = torch.Generator().manual_seed(seed), random_model(kind, seed=seed)
    graphs = [random_graph(generator) for _ in range(4)]
    for graph in graphs:
        for key in ("edge_weight", "node_weights"):
            graph.pop(key, None)
    reference = Reference.of_graphs(model, GraphDataset.from_graphs(graphs, name="reference"))
    check_sums(attribute(model, inputs_of(graphs[0]), reference=reference))
    own = Reference.of_graphs(model, GraphDataset.from_graphs(graphs[:1], name="own"))
    found = attribute(model, inputs_of(graphs[0]), reference=own)
    for part in (found.template_structure, found.template_features, found.readout):
        torch.testing.assert_close(part, torch.zeros_like(part), **CLOSE)


def test_costs_are_those_of_the_solver_and_of_the_definition(seed: int) -> None:
    generator, model = torch.Generator().manual_seed(seed), random_model("linear", seed=seed)
    data, pool = random_graph(generator, nodes=6), model.pool
    solved = pool.solve(**inputs_of(data))
    C, F = dense_structure(6, data.edge_index, data.get("edge_weight"), None), data.x
    C_bar, F_bar = pool.template_structure.detach(), pool.template_features.detach()
    costs = plan_costs(solved.plans, C, F, C_bar, F_bar)
    torch.testing.assert_close(costs.pairs.sum((1, 2)), solved.structure_costs[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(costs.features.sum(1), solved.feature_costs[0], rtol=0, atol=1e-12)
    T, k, i, j = solved.plans[:, 1], 1, 2, 4
    pair = sum(T[i, a] * T[j, b] * (C[i, j] - C_bar[k, a, b]) ** 2 for a in range(5) for b in range(5))
    node = sum(T[i, a] * (F[i] - F_bar[k, a]).square().sum() for a in range(5))
    torch.testing.assert_close(costs.pairs[k, i, j], pair, rtol=0, atol=1e-14)
    torch.testing.assert_close(costs.features[k, i], node, rtol=0, atol=1e-14)


def test_a_linear_head_by_hand(seed: int) -> None:
    """Its slopes are its weights; the reference of a model that does not know its training graphs is 0."""
    generator, model = torch.Generator().manual_seed(seed), random_model("linear", seed=seed, outputs=2)
    inputs = inputs_of(random_graph(generator))
    found = attribute(model, inputs, task="regression", target=1)
    weight, solved, alpha = (
        model.head[0].weight[1].detach(),
        model.pool.solve(**inputs),
        float(model.pool.alpha.detach()),
    )
    torch.testing.assert_close(found.template_structure, weight * alpha * solved.structure_costs[0], **CLOSE)
    torch.testing.assert_close(found.template_features, weight * (1 - alpha) * solved.feature_costs[0], **CLOSE)


def test_a_template_that_the_head_ignores_contributes_nothing(seed: int) -> None:
    model = random_model("sum", seed=seed)
    with torch.no_grad():
        model.head[1][0].weight[:, 2] = 0
    found = attribute(model, inputs_of(random_graph(torch.Generator().manual_seed(seed))))
    for part in (found.templates[2], *found.node_structure[2], *found.node_features[2]):
        assert float(part) == 0
    assert float(found.templates[:2].abs().min()) > 0


def test_single_precision_is_explained_in_double() -> None:
    model = random_model("sum", seed=0)
    inputs = inputs_of(random_graph(torch.Generator().manual_seed(3)))
    single = attribute(model.float(), {k: v.float() if v.is_floating_point() else v for k, v in inputs.items()})
    assert next(model.parameters()).dtype == torch.float32
    check_sums(single)

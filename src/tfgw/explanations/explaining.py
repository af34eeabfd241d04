"""Explain a prediction of any trained model."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation

from tfgw.datasets import GraphDataset
from tfgw.estimators.any_model import INPUTS, AnyModel, open_model
from tfgw.explanations.attribution import Attribution
from tfgw.explanations.ensemble_attribution import attribute_ensemble
from tfgw.explanations.reference import Reference


def explain(
    model: Any, graph: Any, *, target: Any = None, reference: Reference | Sequence[Any] | None = None
) -> Explanation:
    """Say what a model's score for a graph is made of, with sums that are exact at every level.

    >>> explanation = tfgw.explain(tfgw.load_model("runs/MUTAG-1/model.safetensors"), graph)
    >>> explanation.node_mask.sum() + explanation.reference_score           # is explanation.score

    How, is said in :mod:`tfgw.explanations`.

    Args:
        model: A trained model (:func:`tfgw.load_model`), a fitted :class:`tfgw.estimators.TFGWClassifier` or
            :class:`tfgw.estimators.TFGWRegressor`, or a :class:`tfgw.nn.TFGWModel`.
        graph: A graph as the model takes it: for a trained model one of ``model.load(...)``, for an estimator of any
            kind that it takes, for a network a ``Data``.
        target: Label of the class whose score is explained; for other tasks, or for a network, the number of the
            output. ``None``: the predicted class, or the first output.
        reference: Graphs, like ``graph``, whose mean contributions are counted from; ``None``: the mean of the
            training graphs, as far as the model knows it, see :meth:`Reference.of_model`. Also a :class:`Reference`,
            for an ensemble one for each of its networks.

    Returns:
        An ``Explanation`` with the signed masks ``node_mask`` (n, 1) and ``edge_mask`` (E,), and everything of
        :class:`tfgw.explanations.attribution.Attribution` by its name; ``x`` and ``edge_index`` are those of ``graph``.
        A regressor's score is that of its standardised targets.
    """
    opened = open_model(model)
    given = opened.graphs([graph])
    prepared = opened.prepare(_numbered(given))
    inputs = {key: prepared[0][key] for key in INPUTS if key in prepared[0]}
    references = _references(opened, reference)
    found = attribute_ensemble(
        opened.members, inputs, task=opened.task, target=opened.output(target), references=references
    )
    return _as_explanation(_in_given_order(found, prepared[0]), given[0])


def _references(model: AnyModel, reference: Reference | Sequence[Any] | None) -> list[Reference | None]:
    """One for each network: what is read out of a graph differs from one to the other."""
    if reference is None:
        return [None] * len(model.members)
    if len(reference) and all(isinstance(one, Reference) for one in reference):
        return list(reference)
    if not isinstance(reference, Reference):
        prepared = model.prepare(model.graphs(reference))
        return [Reference.of_graphs(network, prepared) for network in model.members]
    if len(model.members) > 1:
        raise ValueError("reference: the model is an ensemble, whose networks read out differently; give graphs")
    return [reference]


def _numbered(dataset: GraphDataset) -> GraphDataset:
    """The one graph of a dataset with its nodes and edges numbered: preprocessing may change their order."""
    graph = dataset[0].clone()
    graph.node_number = torch.arange(graph.num_nodes)
    graph.edge_number = torch.arange(graph.num_edges)
    return GraphDataset.stack([graph], name=dataset.name)


def _in_given_order(found: Attribution, prepared: Data) -> Attribution:
    nodes, edges = prepared.node_number.argsort(), prepared.edge_number.argsort()
    return found._replace(
        node_structure=found.node_structure[:, nodes],
        node_features=found.node_features[:, nodes],
        node_readout=found.node_readout[nodes],
        node_absent_links=found.node_absent_links[nodes],
        edges=found.edges[edges],
        plans=found.plans[nodes],
    )


def _as_explanation(found: Attribution, graph: Data) -> Explanation:
    named: dict[str, Any] = found._asdict()
    edges: Tensor = named.pop("edges")
    return Explanation(x=graph.x, edge_index=graph.edge_index, node_mask=found.nodes[:, None], edge_mask=edges, **named)

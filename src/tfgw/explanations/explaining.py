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
    """Break the score of a model for a graph down into exact contributions.

    >>> explanation = tfgw.explain(tfgw.load_model("runs/MUTAG-1/model.safetensors"), graph)
    >>> explanation.node_mask.sum() + explanation.reference_score           # is explanation.score

    The method is described in :mod:`tfgw.explanations`.

    Args:
        model: A trained model (:func:`tfgw.load_model`), a fitted :class:`tfgw.estimators.TFGWClassifier` or
            :class:`tfgw.estimators.TFGWRegressor`, or a :class:`tfgw.nn.TFGWModel`.
        graph: Graph to explain: for a trained model a graph of ``model.load(...)``, for an estimator any kind of graph
            that it accepts, for a network a ``Data``.
        target: Label of the class whose score is explained; for other tasks, or for a network, the index of the output
            (default: the predicted class, or the first output).
        reference: Graphs, like ``graph``, whose mean is the reference of the contributions (default: the mean of the
            training graphs, if the model stores it, see :meth:`Reference.of_model`). A :class:`Reference`, or one per
            network for an ensemble, is also accepted.

    Returns:
        An ``Explanation`` with the signed masks ``node_mask`` (n, 1) and ``edge_mask`` (E,), and all fields of
        :class:`tfgw.explanations.attribution.Attribution`; ``x`` and ``edge_index`` are those of ``graph``. The score
        of a regressor is on the scale of its standardised targets.
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
    """Return one reference per network, because their readouts differ."""
    if reference is None:
        return [None] * len(model.members)
    if len(reference) and all(isinstance(one, Reference) for one in reference):
        return list(reference)
    if not isinstance(reference, Reference):
        prepared = model.prepare(model.graphs(reference))
        return [Reference.of_graphs(network, prepared) for network in model.members]
    if len(model.members) > 1:
        raise ValueError("reference: an ensemble needs graphs, or one Reference per network")
    return [reference]


def _numbered(dataset: GraphDataset) -> GraphDataset:
    """Number the nodes and edges of the only graph of a dataset, because preprocessing may reorder them."""
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

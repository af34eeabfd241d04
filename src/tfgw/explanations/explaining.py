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
from tfgw.explanations.kernel_attribution import TOP, KernelAttribution, attribute_kernel
from tfgw.explanations.reference import Reference
from tfgw.nn import KernelModel
from tfgw.nn.threads import networks_on_one_thread
from tfgw.train import embeddings


def explain(
    model: Any,
    graph: Any,
    *,
    target: Any = None,
    reference: Reference | Sequence[Any] | None = None,
    top: int = TOP,
) -> Explanation:
    """Break the score of a model for a graph down into exact contributions.

    >>> explanation = tfgw.explain(tfgw.load_model("runs/MUTAG-1/model.safetensors"), graph)
    >>> explanation.node_mask.sum() + explanation.reference_score           # is explanation.score

    The method is described in :mod:`tfgw.explanations`.

    Args:
        model: A trained model (:func:`tfgw.load_model`), a fitted :class:`tfgw.estimators.TFGWClassifier`,
            :class:`tfgw.estimators.TFGWRegressor`, :class:`tfgw.estimators.TFGWKernelClassifier` or
            :class:`tfgw.estimators.TFGWKernelRegressor`, a :class:`tfgw.nn.TFGWModel` or a
            :class:`tfgw.nn.KernelModel`.
        graph: Graph to explain: for a trained model a graph of ``model.load(...)``, for an estimator any kind of graph
            that it accepts, for a network a ``Data``.
        target: Label of the class whose score is explained; for other tasks, or for a network, the index of the output
            (default: the predicted class, or the first output).
        reference: Graphs, like ``graph``, whose mean is the reference of the contributions (default: the mean of the
            training graphs, if the model stores it, see :meth:`Reference.of_model`). A :class:`Reference`, or one per
            network for an ensemble, is also accepted, except for kernel machines.
        top: Number of training graphs that the explanation of a kernel machine lists separately, those that contribute
            most. The others are summed. Networks list all templates.

    Returns:
        An ``Explanation`` with the signed masks ``node_mask`` (n, 1) and ``edge_mask`` (E,), and all fields of
        :class:`tfgw.explanations.attribution.Attribution`, or for a kernel machine
        :class:`tfgw.explanations.kernel_attribution.KernelAttribution`; ``x`` and ``edge_index`` are those of
        ``graph``. The score of a regressor is on the scale of its standardised targets.
    """
    opened = open_model(model)
    given = opened.graphs([graph])
    prepared = opened.prepare(_numbered(given))
    inputs = {key: prepared[0][key] for key in INPUTS if key in prepared[0]}
    wanted: dict[str, Any] = {"task": opened.task, "target": opened.output(target)}
    found: Attribution | KernelAttribution
    if opened.kernel is not None:
        with torch.no_grad(), networks_on_one_thread():
            start = _reference_distances(opened, opened.kernel, reference)
            found = attribute_kernel(opened.kernel, inputs, reference=start, top=top, **wanted)
    else:
        found = attribute_ensemble(opened.members, inputs, references=_references(opened, reference), **wanted)
    return _as_explanation(found, prepared[0], given[0])


def _reference_distances(
    model: AnyModel, kernel: KernelModel, reference: Reference | Sequence[Any] | None
) -> Tensor | None:
    """Return the mean distances of reference graphs to the training graphs, ``(num_distances, num_graphs)``."""
    if reference is None:
        return None
    if isinstance(reference, Reference) or any(isinstance(one, Reference) for one in reference):
        raise ValueError("reference: a kernel machine needs graphs")
    distances = embeddings(kernel, model.prepare(model.graphs(reference)))
    return distances.mean(0).reshape(-1, kernel.num_graphs)


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


NODE_AXES = {
    "node_structure": 1, "node_features": 1, "node_readout": 0, "node_absent_links": 0,
    "node_rest_structure": 0, "node_rest_features": 0,
}  # fmt: skip
"""Position of the axis of nodes in the fields of an attribution."""


def _as_explanation(found: Attribution | KernelAttribution, prepared: Data, graph: Data) -> Explanation:
    """Return all fields, with nodes and edges in the order of the given graph."""
    nodes, edges = prepared.node_number.argsort(), prepared.edge_number.argsort()
    axes = NODE_AXES | {"plans": 0 if isinstance(found, Attribution) else 2}
    named: dict[str, Any] = {
        name: value.index_select(axes[name], nodes) if name in axes else value
        for name, value in found._asdict().items()
    }
    return Explanation(
        x=graph.x,
        edge_index=graph.edge_index,
        node_mask=found.nodes[nodes][:, None],
        edge_mask=named.pop("edges")[edges],
        **named,
    )

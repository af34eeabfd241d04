"""Explain a prediction of any trained model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation

from tfgw.datasets import GraphDataset
from tfgw.estimators.graphs import as_dataset, as_graphs
from tfgw.explanations.attribution import Attribution, attribute
from tfgw.explanations.reference import Reference
from tfgw.nn import TFGWModel
from tfgw.train import Preprocessing, Task, TrainedModel
from tfgw.train.batches import OPTIONAL_INPUTS

INPUTS = ("x", "edge_index", *OPTIONAL_INPUTS)


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
            training graphs, as far as the model knows it, see :meth:`Reference.of_model`.

    Returns:
        An ``Explanation`` with the signed masks ``node_mask`` (n, 1) and ``edge_mask`` (E,), and everything of
        :class:`tfgw.explanations.attribution.Attribution` by its name; ``x`` and ``edge_index`` are those of ``graph``.
        A regressor's score is that of its standardised targets.
    """
    explained = _opened(model)
    given = explained.graphs([graph])
    prepared = explained.prepare(_numbered(given))
    if reference is not None and not isinstance(reference, Reference):
        reference = Reference.of_graphs(explained.network, explained.prepare(explained.graphs(reference)))
    inputs = {key: prepared[0][key] for key in INPUTS if key in prepared[0]}
    number = explained.output(target)
    found = attribute(explained.network, inputs, task=explained.task, target=number, reference=reference)
    return _as_explanation(_in_given_order(found, prepared[0]), given[0])


class _Opened(NamedTuple):
    """A model of any kind, taken apart."""

    network: TFGWModel
    task: Task
    classes: tuple[Any, ...]
    preprocessing: Preprocessing | None
    takes_any_graph: bool

    def graphs(self, graphs: Sequence[Any]) -> GraphDataset:
        """Graphs of a user, before preprocessing."""
        if self.takes_any_graph:
            config = self.network.config
            return as_dataset(as_graphs(graphs, structure=config.structure, directed=config.directed))
        for graph in graphs:
            if not isinstance(graph, Data) or graph.x is None or graph.edge_index is None:
                raise ValueError(f"graph: expected a Data with x and edge_index, got {type(graph).__name__}")
        kept = [Data(**{key: graph[key] for key in INPUTS if graph.get(key) is not None}) for graph in graphs]
        return GraphDataset.stack(kept, name="graph")

    def prepare(self, dataset: GraphDataset) -> GraphDataset:
        return dataset if self.preprocessing is None else self.preprocessing(dataset)

    def output(self, target: Any) -> int | None:
        """The number of an output that a user names."""
        if target is None or not self.classes:
            return None if target is None else int(target)
        if target not in self.classes:
            raise ValueError(f"target: must be one of {', '.join(map(str, self.classes))}, got {target!r}")
        return self.classes.index(target)


def _opened(model: Any) -> _Opened:
    if isinstance(model, TFGWModel):
        return _Opened(model, "classification", (), None, False)
    if isinstance(model, TrainedModel):
        return _Opened(model.model, model.task, model.classes, model.preprocessing, False)
    if isinstance(getattr(model, "model_", None), TFGWModel):
        trained: TrainedModel = model.trained_
        return _Opened(trained.model, trained.task, trained.classes, trained.preprocessing, True)
    raise ValueError(
        "model: expected a trained model, a fitted TFGWClassifier or TFGWRegressor, or a TFGWModel, got"
        f" {type(model).__name__}"
    )


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

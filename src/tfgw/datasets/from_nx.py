"""A dataset from a list of networkx graphs. networkx itself is needed only by those who have such graphs."""

import math
import numbers
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features
from tfgw.datasets.graph_dataset import GraphDataset, build_dataset
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_encoding import NodeEncoding

if TYPE_CHECKING:
    import networkx


def from_networkx(
    graphs: "Sequence[networkx.Graph]",
    *,
    y: Sequence[Any] | str | None = None,
    node_attributes: str | None = None,
    node_labels: str | None = None,
    weight: str | None = None,
    name: str = "networkx",
    features: Features = "auto",
    max_degree: int = DEFAULT_MAX_DEGREE,
    encoding: NodeEncoding | None = None,
) -> GraphDataset:
    """Make a dataset of networkx graphs; nodes are numbered in the order of ``graph.nodes``.

    Args:
        graphs: ``Graph`` (each edge becomes two directed ones) or ``DiGraph``; self-loops are dropped.
        y: one label or real target per graph, or the name of a graph attribute that holds it.
        node_attributes: name of a node attribute, a number or a vector of numbers.
        node_labels: name of a node attribute, a category of any kind.
        weight: name of an edge attribute, kept as ``edge_weight``.
        name: name of the dataset.
        features: what becomes ``x``, see :class:`NodeEncoding`; ``"auto"``: attributes and labels, those that there
            are, or the degree.
        max_degree: cap of the one-hot degree.
        encoding: makes ``x`` as it was made of other graphs; ``features`` and ``max_degree`` are then ignored.
    """
    if not graphs:
        raise ValueError("an empty list of graphs")
    edges = [_edges(graph, number=number, weight=weight) for number, graph in enumerate(graphs)]
    tables = GraphTables(
        node_counts=np.array([len(graph) for graph in graphs]),
        edge_counts=np.array([len(table) for table in edges]),
        edges=np.concatenate(edges)[:, :2].T.astype(np.int64),
        edge_weights=np.concatenate(edges)[:, 2] if weight else None,
        node_attributes=_attribute_table(graphs, node_attributes) if node_attributes else None,
        node_labels=_label_table(graphs, node_labels) if node_labels else None,
        targets=_targets(graphs, y),
    )
    encoding = encoding or NodeEncoding.fit(tables, features=features, max_degree=max_degree)
    return build_dataset(tables, name=name, encoding=encoding)


def _targets(graphs: "Sequence[networkx.Graph]", y: Sequence[Any] | str | None) -> np.ndarray | None:
    if isinstance(y, str):
        missing = [number for number, graph in enumerate(graphs) if y not in graph.graph]
        if missing:
            raise ValueError(f"graph {missing[0]}: no graph attribute {y!r}")
        y = [graph.graph[y] for graph in graphs]
    if y is not None and len(y) != len(graphs):
        raise ValueError(f"{len(y)} targets for {len(graphs)} graphs")
    return None if y is None else np.asarray(y)


def _edges(graph: "networkx.Graph", *, number: int, weight: str | None) -> np.ndarray:
    """Rows (source, target, weight), sorted by the first two, without self-loops."""
    if not len(graph):
        raise ValueError(f"graph {number}: no nodes")
    if graph.is_multigraph():
        raise ValueError(f"graph {number}: parallel edges are not supported, merge them with networkx.Graph(graph)")
    index = {node: position for position, node in enumerate(graph)}
    rows = []
    for source, target, attributes in graph.edges(data=True):
        value = attributes.get(weight) if weight else 1.0
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ValueError(f"graph {number}: the edge {source!r}, {target!r} has no finite number as {weight!r}")
        if source != target:
            rows.append((index[source], index[target], value))
    if not graph.is_directed():
        rows += [(target, source, value) for source, target, value in rows]
    return np.array(sorted(rows), dtype=np.float64).reshape(-1, 3)


def _node_values(graphs: "Sequence[networkx.Graph]", attribute: str) -> list[Any]:
    values = []
    for number, graph in enumerate(graphs):
        for node, attributes in graph.nodes(data=True):
            if attribute not in attributes:
                raise ValueError(f"graph {number}: node {node!r} has no attribute {attribute!r}")
            values.append(attributes[attribute])
    return values


def _attribute_table(graphs: "Sequence[networkx.Graph]", attribute: str) -> np.ndarray:
    values = _node_values(graphs, attribute)
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"node attribute {attribute!r}: not the same number of numbers on every node") from None
    if not np.isfinite(table).all():
        raise ValueError(f"node attribute {attribute!r}: a value is not finite")
    return table.reshape(len(table), -1)


def _label_table(graphs: "Sequence[networkx.Graph]", attribute: str) -> np.ndarray:
    values: list[Hashable] = _node_values(graphs, attribute)
    if {type(value) for value in values} in ({int}, {str}):
        labels = np.array(values)
        if labels.dtype.kind in "iU":  # and no integer is too large: an encoding can keep them as they are
            return labels[:, None]
    try:
        distinct = sorted(set(values))  # type: ignore[type-var]
    except TypeError:  # values of several types have no order of their own
        distinct = sorted(set(values), key=repr)
    code = {value: position for position, value in enumerate(distinct)}
    return np.array([code[value] for value in values])[:, None]

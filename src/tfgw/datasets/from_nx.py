"""A dataset from a list of networkx graphs. networkx itself is needed only by those who have such graphs."""

import math
import numbers
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
    edge_attributes: str | None = None,
    edge_labels: str | None = None,
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
        edge_attributes: name of an edge attribute, a number or a vector of numbers; kept in ``edge_attr``.
        edge_labels: name of an edge attribute, a category of any kind; kept in ``edge_attr``, one-hot.
        weight: name of an edge attribute, kept as ``edge_weight``.
        name: name of the dataset.
        features: what becomes ``x``, see :class:`NodeEncoding`; ``"auto"``: attributes and labels, those that there
            are, or the degree.
        max_degree: cap of the one-hot degree.
        encoding: makes ``x`` as it was made of other graphs; ``features`` and ``max_degree`` are then ignored.
    """
    if not graphs:
        raise ValueError("an empty list of graphs")
    edges = [_edges(graph, number=number) for number, graph in enumerate(graphs)]
    tables = GraphTables(
        node_counts=np.array([len(graph) for graph in graphs]),
        edge_counts=np.array([len(rows) for rows in edges]),
        edges=np.array([row.ends for rows in edges for row in rows], dtype=np.int64).reshape(-1, 2).T,
        edge_weights=_weights(edges, weight) if weight else None,
        node_attributes=_attribute_table(_node_values(graphs, node_attributes), f"node attribute {node_attributes!r}")
        if node_attributes
        else None,
        node_labels=_label_table(_node_values(graphs, node_labels)) if node_labels else None,
        edge_attributes=_attribute_table(_edge_values(edges, edge_attributes), f"edge attribute {edge_attributes!r}")
        if edge_attributes
        else None,
        edge_labels=_label_table(_edge_values(edges, edge_labels)) if edge_labels else None,
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


class _Edge(NamedTuple):
    ends: tuple[int, int]
    names: tuple[Any, Any]  # of its ends
    attributes: dict[str, Any]


def _edges(graph: "networkx.Graph", *, number: int) -> list[_Edge]:
    """The edges, sorted by their ends, without self-loops; those of an undirected graph in both directions."""
    if not len(graph):
        raise ValueError(f"graph {number}: no nodes")
    if graph.is_multigraph():
        raise ValueError(f"graph {number}: parallel edges are not supported, merge them with networkx.Graph(graph)")
    index = {node: position for position, node in enumerate(graph)}
    rows = [
        _Edge((index[source], index[target]), (source, target), attributes)
        for source, target, attributes in graph.edges(data=True)
        if source != target
    ]
    if not graph.is_directed():
        rows += [row._replace(ends=row.ends[::-1]) for row in rows]
    return sorted(rows, key=lambda row: row.ends)


def _weights(edges: list[list[_Edge]], weight: str) -> np.ndarray:
    for number, rows in enumerate(edges):
        for row in rows:
            value = row.attributes.get(weight)
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                source, target = row.names
                raise ValueError(f"graph {number}: the edge {source!r}, {target!r} has no finite number as {weight!r}")
    return np.array([row.attributes[weight] for rows in edges for row in rows], dtype=np.float64)


def _edge_values(edges: list[list[_Edge]], attribute: str) -> list[Any]:
    for number, rows in enumerate(edges):
        for row in rows:
            if attribute not in row.attributes:
                source, target = row.names
                raise ValueError(f"graph {number}: the edge {source!r}, {target!r} has no attribute {attribute!r}")
    return [row.attributes[attribute] for rows in edges for row in rows]


def _node_values(graphs: "Sequence[networkx.Graph]", attribute: str) -> list[Any]:
    values = []
    for number, graph in enumerate(graphs):
        for node, attributes in graph.nodes(data=True):
            if attribute not in attributes:
                raise ValueError(f"graph {number}: node {node!r} has no attribute {attribute!r}")
            values.append(attributes[attribute])
    return values


def _attribute_table(values: list[Any], what: str) -> np.ndarray:
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: not the same number of numbers on every {what.split()[0]}") from None
    if not np.isfinite(table).all():
        raise ValueError(f"{what}: a value is not finite")
    return table.reshape(len(table), -1)


def _label_table(values: list[Hashable]) -> np.ndarray:
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

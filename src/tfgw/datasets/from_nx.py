"""Conversion of networkx graphs to a dataset, without importing networkx."""

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
    """Create a dataset from networkx graphs; nodes are numbered in the order of ``graph.nodes``.

    Args:
        graphs: Graphs of type ``Graph`` (each edge becomes two directed edges) or ``DiGraph``. Self-loops are dropped.
        y: One label or real-valued target per graph, or the name of a graph attribute that contains it.
        node_attributes: Name of a node attribute that is a number or a vector of numbers.
        node_labels: Name of a node attribute that is a category of any type.
        edge_attributes: Name of an edge attribute that is a number or a vector of numbers; stored in ``edge_attr``.
        edge_labels: Name of an edge attribute that is a category of any type; stored one-hot in ``edge_attr``.
        weight: Name of an edge attribute, stored as ``edge_weight``.
        name: Name of the dataset.
        features: Node features, see :class:`NodeEncoding`. ``"auto"`` uses attributes and labels if there are any, else
            degrees.
        max_degree: Largest one-hot degree.
        encoding: Existing encoding to apply, such as that of a model; ``features`` and ``max_degree`` are then ignored.
    """
    if not graphs:
        raise ValueError("the list of graphs is empty")
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
    names: tuple[Any, Any]  # names of both ends
    attributes: dict[str, Any]


def _edges(graph: "networkx.Graph", *, number: int) -> list[_Edge]:
    """Return the edges without self-loops, sorted by their ends, in both directions for an undirected graph."""
    if not len(graph):
        raise ValueError(f"graph {number}: no nodes")
    if graph.is_multigraph():
        raise ValueError(f"graph {number}: parallel edges are not supported; merge them with networkx.Graph(graph)")
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
        raise ValueError(f"{what}: has different lengths on different {what.split()[0]}s") from None
    if not np.isfinite(table).all():
        raise ValueError(f"{what}: contains a value that is not finite")
    return table.reshape(len(table), -1)


def _label_table(values: list[Hashable]) -> np.ndarray:
    if {type(value) for value in values} in ({int}, {str}):
        labels = np.array(values)
        if labels.dtype.kind in "iU":  # and no integer is too large, so an encoding can store them
            return labels[:, None]
    try:
        distinct = sorted(set(values))  # type: ignore[type-var]
    except TypeError:  # values of different types cannot be sorted
        distinct = sorted(set(values), key=repr)
    code = {value: position for position, value in enumerate(distinct)}
    return np.array([code[value] for value in values])[:, None]

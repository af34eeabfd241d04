"""Conversion of graphs in networkx's node-link format to tables."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.datasets.limits import check_array


def node_link_tables(entries: Iterable[tuple[str, Callable[[], Any]]]) -> GraphTables:
    """Check graphs of the same kind and convert them to tables.

    Args:
        entries: For each graph, its position in a file, which starts error messages, and a function that returns the
            object: ``{"nodes": [{"id", "label", "attributes"}], "edges": [{"source", "target", "label", "attributes",
            "weight"}], "directed", "target", "id"}``.
    """
    places, graphs = [], []
    for place, entry in entries:
        try:
            graphs.append(_parse(entry()))
            _check_alike(graphs[-1], graphs[0])
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        places.append(place)
    try:
        return _tables(graphs)
    except _InGraph as error:
        raise ValueError(f"{places[error.graph]}: {error}") from None
    except ValueError as error:  # memory limit exceeded
        raise ValueError(f"{places[0]} and after: {error}") from None


class _InGraph(ValueError):
    """An error in one of several graphs."""

    def __init__(self, graph: int, text: str) -> None:
        super().__init__(text)
        self.graph = graph


class NodeLinkGraph(NamedTuple):
    """A graph as plain lists; ``None`` for what it does not have."""

    num_nodes: int
    ends: list[int]  # source, target, source, …
    directed: bool
    node_labels: list[tuple[Any, ...]] | None
    node_attributes: list[tuple[float, ...]] | None
    edge_labels: list[tuple[Any, ...]] | None
    edge_attributes: list[tuple[float, ...]] | None
    edge_weights: list[tuple[float, ...]] | None
    target: tuple[Any, ...] | None
    identifier: Any


def _parse(value: Any) -> NodeLinkGraph:
    entry = _object(value, "the graph")
    nodes, about = entry.get("nodes"), _object(entry.get("graph", {}), '"graph"')
    # Required, because otherwise a graph with a misspelt key would be read as a graph without edges.
    edges = entry.get("edges", entry.get("links"))
    if not isinstance(nodes, list) or not nodes:
        raise ValueError('"nodes" must be a list of at least one object')
    if not isinstance(edges, list):
        raise ValueError('"edges" (or "links") must be a list of objects')
    directed = entry.get("directed", False)
    if not isinstance(directed, bool):
        raise ValueError('"directed" must be true or false')
    for kind, parts in (("nodes", nodes), ("edges", edges)):
        if set(map(type, parts)) - {dict}:
            raise ValueError(f'"{kind}" has an entry that is not an object')
    return NodeLinkGraph(
        num_nodes=len(nodes),
        ends=_ends(edges, nodes),
        directed=directed,
        node_labels=_column(nodes, "label", "node", _label),
        node_attributes=_column(nodes, "attributes", "node", _number),
        edge_labels=_column(edges, "label", "edge", _label),
        edge_attributes=_column(edges, "attributes", "edge", _number),
        edge_weights=_column(edges, "weight", "edge", _number, single=True),
        target=_values(entry.get("target", about.get("target")), "target", _target),
        identifier=_identifier(entry.get("id", about.get("id"))),
    )


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")
    return value


def _ends(edges: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> list[int]:
    """Return the positions of both ends of each edge, as a flat list."""
    try:
        place = {node.get("id", position): position for position, node in enumerate(nodes)}
        if len(place) < len(nodes):
            raise ValueError('two nodes have the same "id"')
        if set(map(type, place)) - {int, str}:
            raise ValueError('"id" of a node must be an integer or text')
        return [place[edge[end]] for edge in edges for end in ("source", "target")]
    except KeyError as error:
        key = error.args[0]
        if key in ("source", "target") and any(key not in edge for edge in edges):
            raise ValueError(f'an edge has no "{key}"') from None
        raise ValueError(f"an edge ends at {_shown(key)}, which is not a node") from None
    except TypeError:  # lists and objects are not hashable
        raise ValueError('"id" of a node, "source" and "target" must be integers or text') from None


def _column(
    parts: list[dict[str, Any]], key: str, what: str, convert: Any, *, single: bool = False
) -> list[tuple[Any, ...]] | None:
    """Return the values of a key for all nodes or edges: one value each, or the same number of values."""
    values = [part.get(key) for part in parts]
    kinds = set(map(type, values))
    if kinds <= {type(None)}:
        return None
    if not kinds & {type(None), list}:  # by far the most common case
        noun = f'"{key}" of a {what}'
        return [(convert(value, noun),) for value in values]
    found = [_values(value, f'"{key}" of {what} {position}', convert) for position, value in enumerate(values)]
    width = 1 if single else next(len(row) for row in found if row is not None)
    for position, row in enumerate(found):
        if row is None:
            raise ValueError(f'{what} {position} has no "{key}", but others have one')
        if len(row) != width:
            raise ValueError(f'"{key}" of {what} {position} has {len(row)} values, expected {width}')
    return cast(list[tuple[Any, ...]], found)


def _values(value: Any, what: str, convert: Any) -> tuple[Any, ...] | None:
    """Check one value, or those of a list."""
    if value is None:
        return None
    if type(value) is list:
        if not value:
            raise ValueError(f"{what} is an empty list")
        return tuple([convert(one, what) for one in value])
    return (convert(value, what),)


def _number(value: Any, what: str) -> float:
    if type(value) is int and abs(value) < 2**1023:
        value = float(value)
    if type(value) is not float or not math.isfinite(value):
        raise ValueError(f"{what} must be a finite number, found {_shown(value)}")
    return value


def _label(value: Any, what: str) -> int | str:
    if type(value) is not str and (type(value) is not int or not -(2**63) <= value < 2**63):
        raise ValueError(f"{what} must be an integer of at most 64 bits or text, found {_shown(value)}")
    if type(value) is str and "\0" in value:
        raise ValueError(f"{what} contains a null character")
    return value


def _target(value: Any, what: str) -> int | float | str:
    return _number(value, what) if type(value) is float else _label(value, what)


def _identifier(value: Any) -> int | str | None:
    return None if value is None else _label(value, "id")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _check_alike(graph: NodeLinkGraph, first: NodeLinkGraph) -> None:
    """Check that all graphs have the same node and graph attributes, and edge attributes if they have edges."""
    for name in ("node_labels", "node_attributes", "target", "identifier"):
        mine, other = getattr(graph, name), getattr(first, name)
        noun = {"identifier": "id"}.get(name, name.replace("_", " "))
        if (mine is None) != (other is None):
            raise ValueError(f"has {'no' if mine is None else 'a'} {noun}, unlike the previous graphs")
        if name != "identifier" and mine is not None and _width(mine) != _width(other):
            raise ValueError(f"has {_width(mine)} values as {noun}, but the previous graphs have {_width(other)}")


def _width(values: Any) -> int:
    return len(values[0]) if isinstance(values, list) else len(values)


def _tables(graphs: list[NodeLinkGraph]) -> GraphTables:
    node_counts = np.array([graph.num_nodes for graph in graphs])
    listed = np.array([len(graph.ends) // 2 for graph in graphs])
    edges, edge_counts, rows = _distinct(graphs, node_counts, listed)
    return GraphTables(
        node_counts=node_counts,
        edge_counts=edge_counts,
        edges=edges,
        node_labels=_label_table([graph.node_labels or [] for graph in graphs], "label of nodes"),
        node_attributes=_stacked([graph.node_attributes for graph in graphs]),
        edge_labels=_of_rows(_label_table(_of_edges(graphs, "edge_labels"), "label of edges"), rows),
        edge_attributes=_of_rows(_stacked(_of_edges(graphs, "edge_attributes")), rows),
        edge_weights=_weights(graphs, listed, edges, edge_counts, rows),
        targets=_target_table([graph.target for graph in graphs]),
        identifiers=_identifiers([graph.identifier for graph in graphs]),
    )


def _distinct(
    graphs: list[NodeLinkGraph], node_counts: np.ndarray, listed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges as a sorted set without self-loops, (2, E), their number in each graph, and their listed
    positions.

    Undirected edges are included in both directions.
    """
    num_nodes = int(node_counts.sum())
    source, target = np.array([end for graph in graphs for end in graph.ends], dtype=np.int64).reshape(-1, 2).T
    first = np.repeat(starts(node_counts), listed)
    backwards = np.repeat(~np.array([graph.directed for graph in graphs]), listed)
    forth = (source + first) * num_nodes + target + first
    back = (target + first) * num_nodes + source + first
    row = np.arange(len(source))
    keys, rows = np.stack([forth, back], 1).ravel(), np.stack([row, row], 1).ravel()
    counts = np.stack([source != target, backwards & (source != target)], 1).ravel()
    keys, position = np.unique(keys[counts], return_index=True)
    ends = np.stack(np.divmod(keys, max(num_nodes, 1)))
    first_node = starts(node_counts)
    owner = np.repeat(np.arange(len(graphs)), node_counts)[ends[0]]
    edge_counts = np.bincount(owner, minlength=len(graphs))
    return ends - first_node[owner], edge_counts, rows[counts][position]


def _of_edges(graphs: list[NodeLinkGraph], name: str) -> list[Any]:
    """Return the edge attributes of each graph; graphs without edges have none."""
    found = [getattr(graph, name) for graph in graphs]
    widths = [_width(values) if values else 0 for values in found]
    expected = next((width for graph, width in zip(graphs, widths, strict=True) if graph.ends), 0)
    for position, graph in enumerate(graphs):
        if graph.ends and widths[position] != expected:
            noun = name.replace("_", " ")
            raise _InGraph(position, f"has {widths[position]} {noun} per edge, but the previous graphs have {expected}")
    return [values or [] for values in found]


def _of_rows(table: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if table is None else table[rows]


def _weights(
    graphs: list[NodeLinkGraph], listed: np.ndarray, edges: np.ndarray, edge_counts: np.ndarray, rows: np.ndarray
) -> np.ndarray | None:
    table = _stacked(_of_edges(graphs, "edge_weights"))
    if table is None:
        return None
    weights = table[:, 0]
    first = starts(listed)
    for position, graph in enumerate(graphs):
        mine = weights[first[position] : first[position] + listed[position]].tolist()
        seen: dict[tuple[int, int], float] = {}
        for place, weight in enumerate(mine):
            ends = (graph.ends[2 * place], graph.ends[2 * place + 1])
            ends = ends if graph.directed else (min(ends), max(ends))
            if seen.setdefault(ends, weight) != weight:
                raise _InGraph(position, f"the edge between nodes {ends[0]} and {ends[1]} has two different weights")
    return weights[rows]


def _stacked(parts: list[Any]) -> np.ndarray | None:
    present = [part for part in parts if part]
    return np.array([row for part in present for row in part], dtype=np.float64) if present else None


def _label_table(parts: list[Any], what: str) -> np.ndarray | None:
    """Return labels, (rows, columns), which must be all integers or all text."""
    kind = next((type(part[0][0]) for part in parts if part), None)
    if kind is None:
        return None
    for position, part in enumerate(parts):
        if not all(type(value) is kind for row in part for value in row):
            raise _InGraph(position, f"{what}: mixes integers and text")
    return _label_array([row for part in parts for row in part], what)


def _label_array(rows: list[Any], what: str) -> np.ndarray:
    """Create an array of labels; text takes the size of the longest entry in every row."""
    longest = max((len(value) for row in rows for value in row if type(value) is str), default=2)
    check_array(len(rows), len(rows[0]), longest, itemsize=4, what=f"{what} as text", instead="use shorter text")
    return np.array(rows)


def _target_table(targets: list[Any]) -> np.ndarray | None:
    """Return targets: integers or text are classes; numbers with a fraction and lists of numbers are values."""
    if targets[0] is None:
        return None
    is_text = type(targets[0][0]) is str
    for position, row in enumerate(targets):
        if any((type(value) is str) != is_text for value in row):
            raise _InGraph(position, "target: mixes numbers and text")
    if is_text and len(targets[0]) > 1:
        raise _InGraph(0, "target: a list must contain numbers")
    is_label = is_text or len(targets[0]) == 1
    table = _label_array(targets, "target") if is_label else np.array(targets, dtype=np.float64)
    return table[:, 0] if table.shape[1] == 1 else table


def _identifiers(values: list[Any]) -> np.ndarray | None:
    if values[0] is None:
        return None
    for position, value in enumerate(values):
        if type(value) is not type(values[0]):
            raise _InGraph(position, "id: mixes integers and text")
    return _label_array([[value] for value in values], "id")[:, 0]

"""Read a dataset in the text format of the TU collection; malformed files raise an error that names the line.

Node ``i`` is on line ``i`` of every node file, edge ``j`` on line ``j`` of every edge file, both from 1. An undirected
edge is listed in both directions. Self-loops are dropped, and duplicate edges (IMDB-BINARY lists each edge twice) count
once, with their first label. If no graph has an edge, the file of edges must exist and be empty; otherwise an
incomplete copy of a dataset would be read as graphs without edges.
"""

from typing import NamedTuple

import numpy as np

from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.datasets.numbers import Block, read_blocks, read_table
from tfgw.datasets.tu_files import TableFiles

_EDGES_AT_ONCE = 2**20
"""Number of edges processed at a time. A temporary array for all 24.6 million edges of COLLAB takes 200 MB."""


class _Edges(NamedTuple):
    ends: np.ndarray  # (2, E) int32, numbered within the graph
    counts: np.ndarray  # (G,)
    lines: np.ndarray  # (E,) line of each edge in the file, from 0
    num_lines: int


def read_tables(files: TableFiles) -> GraphTables:
    """Parse and check all tables of ``files``."""
    for table in ("A", "graph_indicator"):
        if table not in files:
            raise ValueError(f"{files.label(table)}: the file is missing")
    graph_of_node = _read_graph_of_node(files)
    node_counts = np.bincount(graph_of_node)
    num_nodes, num_graphs = len(graph_of_node), len(node_counts)
    edges = _read_edges(files, graph_of_node=graph_of_node, node_counts=node_counts)
    edge_labels = _read_optional(files, "edge_labels", dtype=np.int64, lines=edges.num_lines)
    edge_attributes = _read_optional(files, "edge_attributes", dtype=np.float64, lines=edges.num_lines)
    return GraphTables(
        node_counts=node_counts,
        edge_counts=edges.counts,
        edges=edges.ends,
        node_labels=_read_optional(files, "node_labels", dtype=np.int64, lines=num_nodes),
        node_attributes=_read_optional(files, "node_attributes", dtype=np.float64, lines=num_nodes),
        edge_labels=None if edge_labels is None else edge_labels[edges.lines],
        edge_attributes=None if edge_attributes is None else edge_attributes[edges.lines],
        targets=_read_targets(files, num_graphs=num_graphs),
    )


def _read_graph_of_node(files: TableFiles) -> np.ndarray:
    """Return the graph of every node, (N,), from 0, non-decreasing, without gaps."""
    label = files.label("graph_indicator")
    with files.open("graph_indicator") as stream:
        graph = read_table(stream, dtype=np.int64, columns=1, label=label)[:, 0]
    step = np.diff(graph, prepend=0)
    wrong = np.flatnonzero((step != 0) & (step != 1))
    if wrong.size or graph[0] != 1:
        line = int(wrong[0]) if graph[0] == 1 else 0
        before = f"graph {graph[line - 1]}" if line else "the start"
        raise ValueError(
            f"{label}, line {line + 1}: graph {graph[line]} after {before}; graphs must be numbered 1, 2, 3, ..."
            " in order, with at least one node each"
        )
    return graph - 1


def missing_targets(files: TableFiles) -> str:
    """Return the error message for missing targets."""
    return f"{files.label('graph_labels')}: the file is missing, and so is {files.name}_graph_attributes.txt"


def _read_targets(files: TableFiles, *, num_graphs: int) -> np.ndarray | None:
    """Return graph labels if there are any, else real-valued attributes, else ``None``."""
    labels = _read_optional(files, "graph_labels", dtype=np.int64, lines=num_graphs, columns=1)
    if labels is not None:
        return labels[:, 0]
    return _read_optional(files, "graph_attributes", dtype=np.float64, lines=num_graphs)


def _read_optional(
    files: TableFiles, table: str, *, dtype: type, lines: int, columns: int | None = None
) -> np.ndarray | None:
    if table not in files:
        return None
    label = files.label(table)
    with files.open(table) as stream:
        values = read_table(stream, dtype=dtype, columns=columns, label=label, may_be_empty=lines == 0)
    if len(values) != lines:
        counted = {"node": "nodes", "edge": "edges", "graph": "graphs"}[table.split("_")[0]]
        raise ValueError(f"{label}: has {len(values)} lines, but the dataset has {lines} {counted}")
    return values if lines else None


def _read_edges(files: TableFiles, *, graph_of_node: np.ndarray, node_counts: np.ndarray) -> _Edges:
    num_nodes = len(graph_of_node)
    keys, lines, num_lines = _read_edge_keys(files, graph_of_node=graph_of_node)
    if not (keys[1:] > keys[:-1]).all():
        keys, first = np.unique(keys, return_index=True)
        lines = lines[first]
    first_nodes = starts(node_counts)
    bounds = np.searchsorted(keys, np.append(first_nodes, num_nodes) * num_nodes)
    ends = _ends_within_graph(keys, first_node=first_nodes[graph_of_node])
    return _Edges(ends, np.diff(bounds), lines, num_lines)


def _read_edge_keys(files: TableFiles, *, graph_of_node: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return key and line of every edge that is not a self-loop, and the number of lines of the file.

    The key is source · N + target: it takes half the memory of a pair, and sorting keys sorts the pairs.
    """
    label = files.label("A")
    num_lines, keys, lines = 0, [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    with files.open("A") as stream:
        for block in read_blocks(stream, dtype=np.int64, columns=2, label=label):
            _check_ends(block, graph_of_node=graph_of_node, label=label)
            source, target = block.values.T - 1
            kept = np.flatnonzero(source != target)
            keys.append(source[kept] * len(graph_of_node) + target[kept])
            lines.append((num_lines + kept).astype(np.int32))
            num_lines += len(block.values)
    return np.concatenate(keys), np.concatenate(lines), num_lines


def _ends_within_graph(keys: np.ndarray, *, first_node: np.ndarray) -> np.ndarray:
    """Convert keys to both ends of every edge, (2, E), numbered from the first node of their graph."""
    ends = np.empty((2, len(keys)), dtype=np.int32)
    for start in range(0, len(keys), _EDGES_AT_ONCE):
        part = slice(start, start + _EDGES_AT_ONCE)
        source, target = np.divmod(keys[part], len(first_node))
        ends[0, part] = source - first_node[source]
        ends[1, part] = target - first_node[source]
    return ends


def _check_ends(block: Block, *, graph_of_node: np.ndarray, label: str) -> None:
    num_nodes = len(graph_of_node)
    unknown = (block.values < 1) | (block.values > num_nodes)
    if unknown.any():
        line, column = np.argwhere(unknown)[0]
        node = block.values[line, column]
        raise ValueError(
            f"{label}, line {block.first_line + line}: node {node} does not exist; nodes are numbered 1 to {num_nodes}"
        )
    graphs = graph_of_node[block.values - 1]
    crossing = np.flatnonzero(graphs[:, 0] != graphs[:, 1])
    if crossing.size:
        line = crossing[0]
        source, target = block.values[line]
        raise ValueError(
            f"{label}, line {block.first_line + line}: the edge from node {source} to node {target} connects two"
            f" graphs, {graphs[line, 0] + 1} and {graphs[line, 1] + 1}"
        )

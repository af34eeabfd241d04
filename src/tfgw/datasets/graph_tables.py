"""Many graphs as a few flat arrays, for parsing, checking and caching."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from tfgw.datasets.limits import check_array


@dataclass(frozen=True, kw_only=True)
class GraphTables:
    """G graphs with N nodes and E edges in total, stored graph after graph."""

    node_counts: np.ndarray  # (G,) int64
    edge_counts: np.ndarray  # (G,) int64
    edges: np.ndarray  # (2, E) integer; a node's number within its own graph, from 0
    node_labels: np.ndarray | None = None  # (N, label columns)
    node_attributes: np.ndarray | None = None  # (N, attribute columns) float64
    edge_labels: np.ndarray | None = None  # (E, label columns)
    edge_attributes: np.ndarray | None = None  # (E, attribute columns) float64
    edge_weights: np.ndarray | None = None  # (E,) float64
    targets: np.ndarray | None = None  # (G,) labels, or (G,) or (G, values) floating-point numbers
    identifiers: np.ndarray | None = None  # (G,) integers or text: identifier of each graph in the source

    def part(self, start: int, stop: int) -> "GraphTables":
        """Return the graphs from position ``start`` up to ``stop`` (exclusive)."""
        graphs = slice(start, stop)
        nodes = slice(int(self.node_counts[:start].sum()), int(self.node_counts[:stop].sum()))
        edges = slice(int(self.edge_counts[:start].sum()), int(self.edge_counts[:stop].sum()))
        return GraphTables(
            node_counts=self.node_counts[graphs],
            edge_counts=self.edge_counts[graphs],
            edges=self.edges[:, edges],
            node_labels=_rows(self.node_labels, nodes),
            node_attributes=_rows(self.node_attributes, nodes),
            edge_labels=_rows(self.edge_labels, edges),
            edge_attributes=_rows(self.edge_attributes, edges),
            edge_weights=_rows(self.edge_weights, edges),
            targets=_rows(self.targets, graphs),
            identifiers=_rows(self.identifiers, graphs),
        )

    def degrees(self) -> np.ndarray:
        """Return the out-degree of each node, (N,)."""
        nodes = self.edges[0] + np.repeat(starts(self.node_counts), self.edge_counts)
        return np.bincount(nodes, minlength=int(self.node_counts.sum()))


def starts(counts: np.ndarray) -> np.ndarray:
    """Return the start index of each of several consecutive runs of the given lengths."""
    return np.cumsum(counts) - counts


def concatenated(parts: Sequence[GraphTables]) -> GraphTables:
    """Concatenate the graphs of all parts.

    Raises:
        ValueError: If the parts have different attributes or types.
    """
    joined = {}
    for name in (field.name for field in fields(GraphTables)):
        of_edges = name.startswith("edge_") and name != "edge_counts"
        relevant = [part for part in parts if not of_edges or part.edges.size]
        tables = [getattr(part, name) for part in relevant]
        present = [table for table in tables if table is not None]
        if not present:
            continue
        noun = name.replace("_", " ")
        if len(present) < len(tables):
            raise ValueError(f"some graphs have {noun}, others do not")
        if len({table.shape[1:] for table in present if name != "edges"}) > 1:
            raise ValueError(f"{noun}: graphs have different numbers of values")
        if len({table.dtype.kind == "U" for table in present}) > 1:
            raise ValueError(f"{noun}: mixes numbers and text")
        size, widest = sum(table.size for table in present), max(table.itemsize for table in present)
        check_array(size, itemsize=widest, what=noun, instead="split the dataset, or use shorter text")
        joined[name] = np.concatenate(present, axis=1 if name == "edges" else 0)
    return GraphTables(**joined)


def _rows(table: np.ndarray | None, rows: slice) -> np.ndarray | None:
    return None if table is None else table[rows]

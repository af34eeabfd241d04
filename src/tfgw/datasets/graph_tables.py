"""Many graphs as a few flat arrays: the form in which they are parsed, checked and cached."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class GraphTables:
    """G graphs with N nodes and E edges in all, stored graph after graph."""

    node_counts: np.ndarray  # (G,) int64
    edge_counts: np.ndarray  # (G,) int64
    edges: np.ndarray  # (2, E) integer; a node's number within its own graph, from 0
    node_labels: np.ndarray | None = None  # (N, label columns)
    node_attributes: np.ndarray | None = None  # (N, attribute columns) float64
    edge_labels: np.ndarray | None = None  # (E, label columns)
    edge_attributes: np.ndarray | None = None  # (E, attribute columns) float64
    edge_weights: np.ndarray | None = None  # (E,) float64
    targets: np.ndarray | None = None  # (G,) labels, or (G,) or (G, values) floating-point numbers
    identifiers: np.ndarray | None = None  # (G,) integers or text: what the source calls each graph

    def degrees(self) -> np.ndarray:
        """Number of edges that leave each node, (N,)."""
        nodes = self.edges[0] + np.repeat(starts(self.node_counts), self.edge_counts)
        return np.bincount(nodes, minlength=int(self.node_counts.sum()))


def starts(counts: np.ndarray) -> np.ndarray:
    """Index at which each of several consecutive runs of the given lengths starts."""
    return np.cumsum(counts) - counts

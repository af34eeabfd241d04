"""Clustering coefficients: the number of triangles through the nodes of a graph."""

import numpy as np
import torch
from torch import Tensor

BLOCK = 4096
"""Number of nodes whose triangles are counted at a time, which bounds the memory."""


def clustering_coefficients(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return the share of linked pairs among the neighbours of each node, ``(num_nodes, 1)``; 0 without such pairs.

    Loops and repeated edges do not count.

    Args:
        edge_index: Edges ``(2, num_edges)``, in both directions.
        num_nodes: Number of nodes.
    """
    from scipy.sparse import csr_array  # slow to import

    def matrix(source: np.ndarray, target: np.ndarray) -> csr_array:
        return csr_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes))

    linked = matrix(*edge_index[:, edge_index[0] != edge_index[1]].numpy())  # without repeated edges
    degrees = np.diff(linked.indptr)
    source, target = np.repeat(np.arange(num_nodes), degrees), linked.indices
    # Each edge once, towards the node of higher degree: no node has many such edges, so there are few paths.
    onwards = (degrees[source] < degrees[target]) | ((degrees[source] == degrees[target]) & (source < target))
    edges = matrix(source[onwards], target[onwards])
    reverse = edges.T.tocsr()
    triangles = np.zeros(num_nodes)
    for first in range(0, num_nodes, BLOCK):
        rows = slice(first, first + BLOCK)
        outer = (edges[rows] @ edges).multiply(edges[rows])  # a → b → c and a → c, at (a, c)
        triangles[rows] += outer.sum(1) + (reverse[rows] @ edges).multiply(edges[rows]).sum(1)  # of a, and of b
        triangles += outer.sum(0)  # of c
    pairs = degrees * (degrees - 1.0) / 2
    return torch.from_numpy(triangles / np.maximum(pairs, 1))[:, None]

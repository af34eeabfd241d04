"""Shortest-path matrices, which are computed once per graph."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from tfgw.datasets.limits import check_array


def shortest_paths(edge_index: Tensor, num_nodes: int, *, edge_weight: Tensor | None = None) -> Tensor:
    """Compute the dense (n, n) matrix of shortest-path lengths: hops, or sums of ``edge_weight`` if given.

    Paths follow the direction of edges; undirected graphs list both directions. **If there is no path, the entry is the
    largest finite distance of the graph plus 1**: finite, larger than every actual distance, and on the scale of the
    graph.
    """
    from scipy.sparse import csr_array  # slow to import, and rarely needed
    from scipy.sparse.csgraph import shortest_path

    check_array(num_nodes, num_nodes, itemsize=8, what="shortest paths of a graph", instead="compare edges (adjacency)")
    source, target = edge_index.cpu().numpy()
    if edge_weight is None:
        lengths = np.ones(len(source))
    else:
        lengths = _checked_weights(edge_weight)
        source, target, lengths = _shortest_parallel(source, target, lengths)
    graph = csr_array((lengths, (source, target)), shape=(num_nodes, num_nodes))
    # Algorithms of the oldest supported SciPy require 32-bit indices.
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    distances = shortest_path(graph, method="D", unweighted=edge_weight is None)
    unreachable = np.isinf(distances)
    distances[unreachable] = distances[~unreachable].max() + 1
    return torch.as_tensor(distances, dtype=torch.get_default_dtype(), device=edge_index.device)


class ShortestPaths(BaseTransform):
    """Store the shortest-path matrix as ``data.structure``, flattened to n² numbers.

    It is flattened because PyTorch Geometric's ``Batch`` concatenates attributes. ``data.edge_weight`` is used if there
    is one. ``dataset.map(ShortestPaths())`` computes the matrices of all graphs once.
    """

    def forward(self, data: Data) -> Data:
        distances = shortest_paths(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
        data.structure = distances.flatten()
        return data


def _checked_weights(edge_weight: Tensor) -> np.ndarray:
    weights = edge_weight.detach().cpu().double().flatten().numpy()
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("edge weights must be finite and non-negative for shortest paths")
    return weights


def _shortest_parallel(
    source: np.ndarray, target: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keep the shortest of several edges between the same nodes; a sparse matrix would sum them."""
    order = np.lexsort((lengths, target, source))
    source, target, lengths = source[order], target[order], lengths[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[is_first], target[is_first], lengths[is_first]

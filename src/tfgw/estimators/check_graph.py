"""Checks of every converted graph."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import is_undirected

from tfgw.estimators.conversion import Attributes


def check_graph(graph: Attributes, *, structure: str, directed: bool) -> None:
    """Raise ``ValueError`` for an invalid graph, and rescale its node weights to sum to 1 exactly."""
    nodes, edges = len(graph["x"]), graph["edge_index"]
    _check_edges(edges, nodes)
    if "edge_weight" in graph:
        _check_edge_weights(graph["edge_weight"], edges.shape[1], structure)
    if "node_weights" in graph:
        _check_node_weights(graph["node_weights"], nodes)
        graph["node_weights"] /= graph["node_weights"].sum()
    if not directed and not _is_symmetric(graph, nodes):
        raise ValueError("the structure is not symmetric; use directed=True for such graphs")


def _check_edges(edge_index: Tensor, nodes: int) -> None:
    if len(edge_index) != 2:
        raise ValueError(f"edge_index: expected shape (2, edges), got {tuple(edge_index.shape)}")
    ends = edge_index.numpy()
    if ends.size and (ends.min() < 0 or ends.max() >= nodes):
        raise ValueError(f"edge_index: contains a node outside 0 to {nodes - 1}")


def _check_edge_weights(weights: Tensor, edges: int, structure: str) -> None:
    if len(weights) != edges:
        raise ValueError(f"edge_weight: has {len(weights)} weights for {edges} edges")
    if structure == "shortest_path" and bool((weights < 0).any()):
        raise ValueError("edge_weight: shortest paths require non-negative weights")


def _check_node_weights(weights: Tensor, nodes: int) -> None:
    if len(weights) != nodes:
        raise ValueError(f"node weights: {len(weights)} weights for {nodes} nodes")
    if bool((weights < 0).any()) or abs(float(weights.sum()) - 1) > 1e-5:
        raise ValueError("node weights: must be non-negative and sum to 1")


def _is_symmetric(graph: Attributes, nodes: int) -> bool:
    if "structure" in graph:
        matrix = graph["structure"].reshape(nodes, nodes)
        return torch.allclose(matrix, matrix.T, rtol=1e-7, atol=0)
    if "edge_weight" in graph:
        return bool(is_undirected(graph["edge_index"], graph["edge_weight"], num_nodes=nodes))
    numbers = (
        np.array([[nodes, 1], [1, nodes]]) @ graph["edge_index"].numpy()
    )  # unique numbers of each edge and of its reverse
    numbers.sort()
    return bool((numbers[0] == numbers[1]).all())

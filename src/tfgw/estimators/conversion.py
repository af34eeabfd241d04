"""Conversion of one graph of any supported kind to tensors."""

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import from_networkx
from tfgw.datasets.edge_sets import distinct_edges

Attributes = dict[str, Tensor]
"""Attributes of a graph. ``Data`` objects are created after all checks, because they are slower to access."""


def kind_of(graph: Any) -> str:
    """Return a description of the kind of a graph."""
    if isinstance(graph, Data):
        return "a Data"
    networkx = sys.modules.get("networkx")  # imported already if the graph is of this kind
    if networkx is not None and isinstance(graph, networkx.Graph):
        return "a networkx graph"
    if isinstance(graph, tuple) and len(graph) in (2, 3):
        return "a tuple"
    described = f"a tuple of {len(graph)}" if isinstance(graph, tuple) else type(graph).__name__
    raise ValueError(f"expected a Data, a networkx graph, or a tuple (C, F) or (C, F, h), got {described}")


def convert(graph: Any, *, structure: str) -> Attributes:
    """Convert a graph. Error messages do not name the graph; the caller adds its number."""
    kind = kind_of(graph)
    if kind == "a Data":
        return _from_data(graph, precomputed=structure == "precomputed")
    if kind == "a tuple":
        return _from_matrices(*graph, precomputed=structure == "precomputed")
    if structure == "precomputed":
        raise ValueError(
            "structure='precomputed' requires tuples (C, F), or Data with a structure; got a networkx graph"
        )
    return _from_networkx(graph)


def _from_data(graph: Data, *, precomputed: bool) -> Attributes:
    given = graph.to_dict()
    nodes = _num_nodes(graph, given)
    if not nodes:
        raise ValueError("no nodes")
    x = _features("x", given.get("x"), nodes)
    weights = _optional("node_weights", given.get("node_weights"))
    if not precomputed:
        edge_weight, edges = _optional("edge_weight", given.get("edge_weight")), _edges(given.get("edge_index"))
        if edge_weight is None and len(edges) == 2:
            kept = distinct_edges(edges.numpy(), nodes)
            edges = edges if kept is None else edges[:, kept]
        return _attributes(x, edges, edge_weight=edge_weight, node_weights=weights)
    if given.get("structure") is None:
        raise ValueError("structure: required for structure='precomputed'")
    matrix = _numbers("structure", given["structure"])
    if matrix.numel() != nodes**2:
        raise ValueError(f"structure: expected {nodes} × {nodes} numbers, got shape {tuple(matrix.shape)}")
    matrix = matrix.reshape(nodes, nodes)
    edges = _off_diagonal(matrix) if given.get("edge_index") is None else _edges(given["edge_index"])
    return _attributes(x, edges, structure=matrix.flatten(), node_weights=weights)


def _num_nodes(graph: Data, given: dict[str, Any]) -> int | None:
    x = given.get("x")
    if isinstance(x, Tensor) and x.dim() and "num_nodes" not in given:
        return x.shape[0]
    return graph.num_nodes


def _from_matrices(C: Any, F: Any, h: Any = None, *, precomputed: bool) -> Attributes:
    matrix = _numbers("C", C)
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"C: expected a square matrix, got shape {tuple(matrix.shape)}")
    nodes = len(matrix)
    if nodes == 0:
        raise ValueError("no nodes")
    if torch.allclose(matrix, matrix.T, rtol=1e-7, atol=0):
        matrix = (matrix + matrix.T) / 2  # removes asymmetry due to rounding
    x, weights = _features("F", F, nodes), _optional("h", h)
    edges = _off_diagonal(matrix)
    if precomputed:
        return _attributes(x, edges, structure=matrix.flatten(), node_weights=weights)
    if bool(matrix.diagonal().any()):
        raise ValueError(
            "C: an adjacency matrix must have a zero diagonal; use structure='precomputed' for other matrices"
        )
    values = matrix[edges[0], edges[1]]
    return _attributes(x, edges, edge_weight=None if bool((values == 1).all()) else values, node_weights=weights)


def _from_networkx(graph: Any) -> Attributes:
    weighted = any("weight" in attributes for *_, attributes in graph.edges(data=True))
    try:
        edges = from_networkx([graph], weight="weight" if weighted else None, features="constant")[0]
    except ValueError as error:
        raise ValueError(str(error).removeprefix("graph 0: ")) from None
    values = dict(graph.nodes(data="x"))
    missing = [node for node, value in values.items() if value is None]
    if missing and len(missing) < len(values):
        raise ValueError(f"node {missing[0]!r} has no attribute 'x', but others have one")
    x = _features("x", None if missing else list(values.values()), len(values))
    return _attributes(x, edges.edge_index, edge_weight=_optional("weight", edges.get("edge_weight")))


def _attributes(x: Tensor, edge_index: Tensor, **optional: Tensor | None) -> Attributes:
    present = {key: value for key, value in optional.items() if value is not None}
    return {"x": x, "edge_index": edge_index, **present}


def _features(name: str, values: Any, nodes: int) -> Tensor:
    if values is None:
        return torch.zeros(nodes, 0, dtype=torch.float64)
    x = _numbers(name, values)
    x = x[:, None] if x.dim() == 1 else x
    if x.dim() != 2 or len(x) != nodes:
        raise ValueError(f"{name}: expected one row for each of {nodes} nodes, got shape {tuple(x.shape)}")
    return x


def _edges(edge_index: Any) -> Tensor:
    if not isinstance(edge_index, Tensor) or edge_index.dtype != torch.int64 or edge_index.dim() != 2:
        raise ValueError("edge_index: must be an int64 tensor of shape (2, edges)")
    return edge_index.detach().cpu()


def _off_diagonal(matrix: Tensor) -> Tensor:
    """Return the indices of the non-zero off-diagonal entries, ``(2, entries)``."""
    return matrix.clone().fill_diagonal_(0).nonzero().T.contiguous()


def _optional(name: str, values: Any) -> Tensor | None:
    return None if values is None else _numbers(name, values).flatten()


def _numbers(name: str, values: Any) -> Tensor:
    """Copy an array, tensor or nested list to a tensor in double precision."""
    try:
        if isinstance(values, Tensor):
            values = values.detach().cpu().numpy()
        if np.iscomplexobj(values):
            raise TypeError
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected an array of numbers") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: contains a value that is not finite")
    return torch.from_numpy(numbers)

"""Convert lists of graphs in any supported format to the parts of a ragged set, and validate each graph."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.inputs import GraphBatch
from tfgw.ot.problem import weight_tolerance
from tfgw.ot.ragged import GraphList, MergedNodes, Part, native_graphs, sorted_edges


def read_lists(graphs: Any, others: Any, *, features_only: bool) -> list[GraphList]:
    """Read one or two lists of graphs, in the given node order; ``features_only`` omits structures.

    Raises:
        ValueError: If a graph is invalid, or of a different kind than the first graph. The message names the graph.
    """
    first = read_graphs(graphs, features_only=features_only)
    if others is None:
        return [first]
    try:
        second = read_graphs(others, features_only=features_only)
        _check_alike(second[0], first[0], 0, "those of graphs have")
    except ValueError as error:
        raise ValueError(f"others: {str(error).removeprefix('graphs: ')}") from None
    return [first, second]


def device_of(graphs: Any) -> torch.device:
    """Return the device of the first graph's features; iterators are not consumed and count as on the CPU."""
    first = graphs[0] if isinstance(graphs, (list, tuple, Dataset)) and graphs else graphs
    x = getattr(first, "x", None)
    return x.device if isinstance(x, Tensor) else torch.device("cpu")


def read_graphs(graphs: Any, *, features_only: bool) -> GraphList:
    """Read a list of graphs, or return one that has been read before."""
    if isinstance(graphs, GraphList):
        has_structure = graphs[0].edge_index is not None or graphs[0].structure is not None
        if has_structure == features_only:
            raise ValueError("graphs: were read for another kind of comparison, with or without structure")
        return graphs
    if isinstance(graphs, GraphBatch):
        parts, tolerance = _from_batch(graphs), weight_tolerance(graphs.x.dtype)
    elif _is_list(graphs):
        parts, tolerance = _from_list(graphs)
    else:
        raise ValueError(f"graphs: expected a list of graphs or a GraphBatch, got {type(graphs).__name__}")
    if not parts:
        raise ValueError("graphs: an empty list")
    if features_only:
        parts = [part._replace(edge_index=None, edge_weight=None, structure=None) for part in parts]
    elif parts[0].edge_index is None and parts[0].structure is None:
        raise ValueError("edge_index: graph 0 has no structure; alpha=0 compares features only")
    native_graphs(parts).validate(tolerance)
    if features_only:
        merged = _merged(parts)
        return GraphList((part for part, _ in merged), [nodes for _, nodes in merged])
    return GraphList(part if part.edge_index is None else _as_set(part) for part in parts)


def _is_list(graphs: Any) -> bool:
    if isinstance(graphs, Dataset):
        return True
    # A graph or a batch of PyTorch Geometric iterates over its attributes.
    return isinstance(graphs, Iterable) and not isinstance(graphs, (str, dict, Tensor)) and not hasattr(graphs, "x")


def _from_list(graphs: Iterable[Any]) -> tuple[list[Part], float]:
    parts: list[Part] = []
    tolerance = 0.0
    for number, graph in enumerate(graphs):
        try:
            part, dtype = _read(graph)
        except ValueError as error:
            name, _, message = str(error).partition(": ")
            raise ValueError(f"{name}: graph {number} {message}") from None
        if parts:
            _check_alike(part, parts[0], number, "graph 0 has")
        parts.append(part)
        tolerance = max(tolerance, weight_tolerance(dtype))
    return parts, tolerance


def _read(graph: Any) -> tuple[Part, torch.dtype]:
    """Read a graph and the precision of its features. Error messages do not name the graph, as in "x: has …"."""
    x, weights = _attribute(graph, "x"), _attribute(graph, "node_weights")
    if x is None:
        raise ValueError("x: has no x (that of nodes without features has shape (n, 0))")
    if x.dim() != 2 or not len(x):
        raise ValueError(f"x: has features of shape {tuple(x.shape)}, expected (num_nodes, num_features)")
    nodes = len(x)
    if weights is not None and weights.numel() != nodes:
        raise ValueError(f"node_weights: has {weights.numel()} weights for {nodes} nodes")
    h = np.full(nodes, 1 / nodes) if weights is None else _numbers(weights).reshape(nodes)
    dtype = x.dtype if x.is_floating_point() else torch.float64
    structure = _attribute(graph, "structure")
    if structure is None:
        return Part(_numbers(x), h, *_read_edges(graph, nodes), None), dtype
    if structure.numel() != nodes**2:
        raise ValueError(f"structure: has {structure.numel()} entries for {nodes} nodes, expected {nodes**2}")
    return Part(_numbers(x), h, None, None, _numbers(structure).reshape(nodes, nodes)), dtype


def _read_edges(graph: Any, nodes: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    edge_index, edge_weight = _attribute(graph, "edge_index"), _attribute(graph, "edge_weight")
    if edge_index is None:
        return None, None
    if edge_index.dtype != torch.int64 or edge_index.dim() != 2 or len(edge_index) != 2:
        found = f"{edge_index.dtype} of shape {tuple(edge_index.shape)}"
        raise ValueError(f"edge_index: has {found}, expected torch.int64 of shape (2, num_edges)")
    ends = edge_index.numpy()
    if ends.size and (ends.min() < 0 or ends.max() >= nodes):
        raise ValueError(f"edge_index: has an edge to a node outside 0 to {nodes - 1}")
    if edge_weight is None:
        return ends, None
    if edge_weight.numel() != ends.shape[1]:
        raise ValueError(f"edge_weight: has {edge_weight.numel()} weights for {ends.shape[1]} edges")
    return ends, _numbers(edge_weight).reshape(-1)


def _attribute(graph: Any, name: str) -> Tensor | None:
    value = getattr(graph, name, None)
    if value is None:
        return None
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_complex():
        kind = f"tensor of {value.dtype}, {value.layout}" if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name}: has a {kind} where a dense tensor of real numbers is expected")
    return value.detach().cpu()


def _from_batch(graphs: GraphBatch) -> list[Part]:
    batch = np.zeros(len(graphs.x), dtype=np.int64) if graphs.batch is None else graphs.batch.cpu().numpy()
    ptr = np.zeros(graphs.num_graphs + 1, dtype=np.int64)
    _core.offsets(np.ascontiguousarray(batch), ptr)
    sizes = np.diff(ptr)
    if not sizes.all():
        raise ValueError(f"batch: graph {int(sizes.argmin())} has no nodes")
    x = np.split(_numbers(graphs.x), ptr[1:-1])
    weights = [np.full(n, 1 / n) for n in sizes]
    if graphs.node_weights is not None:
        weights = np.split(_numbers(graphs.node_weights), ptr[1:-1])
    edges: Sequence[Any] = [None] * len(sizes)
    edge_weights: Sequence[Any] = edges
    matrices: Sequence[Any] = edges
    if graphs.structure is not None:
        flat = _numbers(graphs.structure).reshape(-1)
        if flat.size != (sizes**2).sum():
            raise ValueError(f"structure: has {flat.size} entries, but graphs of these sizes need {(sizes**2).sum()}")
        blocks = np.split(flat, np.cumsum(sizes**2)[:-1])
        matrices = [block.reshape(n, n) for block, n in zip(blocks, sizes, strict=True)]
    if graphs.edge_index is not None:
        edges, edge_weights = _split_edges(graphs, batch, ptr)
    return [Part(*parts) for parts in zip(x, weights, edges, edge_weights, matrices, strict=True)]


def _split_edges(graphs: GraphBatch, batch: np.ndarray, ptr: np.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
    assert graphs.edge_index is not None
    source, target = graphs.edge_index.cpu().numpy()
    for ends in (source, target):
        if ends.size and (ends.min() < 0 or ends.max() >= len(batch)):
            raise ValueError(f"edge_index: points to a node outside 0 to {len(batch) - 1}")
    crossing = np.flatnonzero(batch[source] != batch[target])
    if crossing.size:
        edge = crossing[0]
        raise ValueError(f"edge_index: edge {edge} joins graph {batch[source[edge]]} and graph {batch[target[edge]]}")
    order = np.argsort(batch[source], kind="stable")
    cuts = np.searchsorted(batch[source][order], np.arange(1, len(ptr) - 1))
    first = ptr[:-1][batch[source[order]]]
    local = np.stack([source[order] - first, target[order] - first])
    edges = np.split(local, cuts, axis=1)
    if graphs.edge_weight is None:
        return edges, [None] * len(edges)
    return edges, np.split(_numbers(graphs.edge_weight)[order], cuts)


def _check_alike(part: Part, first: Part, number: int, others_have: str) -> None:
    """Check that a graph has the same kind of structure and the same number of features as the first graph."""
    columns, expected = part.x.shape[1], first.x.shape[1]
    if columns != expected:
        raise ValueError(f"x: graph {number} has {columns} features per node, but {others_have} {expected}")
    for field in ("edge_index", "edge_weight", "structure"):
        if (getattr(part, field) is None) != (getattr(first, field) is None):
            has, have = ("no ", "one") if getattr(part, field) is None else ("", "none")
            raise ValueError(f"{field}: graph {number} has {has}{field}, but {others_have} {have}")


def _merged(parts: Sequence[Part]) -> list[tuple[Part, MergedNodes]]:
    """Merge nodes with equal features. Without structure, they are interchangeable, and only their weight counts."""
    numbers = np.split(_row_numbers(np.concatenate([p.x for p in parts])), np.cumsum([p.num_nodes for p in parts])[:-1])
    merged = []
    for part, number in zip(parts, numbers, strict=True):
        _, first, place = np.unique(number, return_index=True, return_inverse=True)
        weights = np.bincount(place, part.node_weights)
        merged.append((part._replace(x=part.x[first], node_weights=weights), MergedNodes(place, part.node_weights)))
    return merged


def _row_numbers(rows: np.ndarray) -> np.ndarray:
    """Return the number of each row in the sorted list of different rows.

    Equal rows are found by their hashes, because sorting all rows takes much longer than sorting the different ones.
    """
    _, first, number = np.unique(_hashes(rows), return_index=True, return_inverse=True)
    different = rows[first]
    if not np.array_equal(different[number], rows):  # two rows with the same hash
        different, number = rows, np.arange(len(rows))
    order = np.lexsort(different.T[::-1]) if rows.shape[1] else np.arange(len(different))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (different[order[1:]] != different[order[:-1]]).any(axis=1)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(is_new) - 1
    return rank[number]


def _hashes(rows: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(rows).view(np.uint64)
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes: np.ndarray = ((bits ^ (bits >> np.uint64(32))) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _as_set(part: Part) -> Part:
    """Sort and deduplicate edges. Weights of repeated edges add up; without weights, self-loops are removed."""
    edge_index, edge_weight = part.edge_index, part.edge_weight
    assert edge_index is not None
    nodes = part.num_nodes
    if edge_weight is not None:
        edge_index, edge_weight = sorted_edges(edge_index, edge_weight)
    keys, first = np.unique(edge_index[0] * nodes + edge_index[1], return_index=True)
    edge_index = np.stack(np.divmod(keys, nodes))
    if edge_weight is None:
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    elif len(first):
        edge_weight = np.add.reduceat(edge_weight, first)
    return part._replace(edge_index=edge_index, edge_weight=edge_weight)


def _numbers(tensor: Tensor) -> np.ndarray:
    """Convert to double precision, with −0 replaced by 0."""
    return tensor.detach().to("cpu", torch.float64).numpy() + 0.0

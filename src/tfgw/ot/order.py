"""Canonical node order: isomorphic graphs are equal after their nodes are put in canonical order."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot import _core  # the C++ extension
from tfgw.ot.inputs import GraphBatch, check_integer

EFFORT = 2**28
"""Maximum number of search steps per graph, about ten nanoseconds each: a few seconds for a graph that is too hard."""


class NodeOrder(NamedTuple):
    """Canonical orders of B graphs with N nodes in all.

    Attributes:
        order: The nodes of the batch, graph by graph, in canonical order within each graph, ``(N,)``.
        exact: Whether the order of a graph is canonical, ``(B,)``. If not, the search gave up: the order is the best
            one found and may depend on the original node numbering.
    """

    order: Tensor
    exact: Tensor


def canonical_order(
    graphs: GraphBatch,
    *,
    edge_attr: Tensor | None = None,
    structure: Tensor | None = None,
    effort: int = EFFORT,
) -> NodeOrder:
    """Put the nodes of each graph in an order that does not depend on the original numbering.

    Two graphs are isomorphic if a renumbering of nodes makes structure, features and weights equal, to the last bit.
    In canonical order, isomorphic graphs are equal. If features come from a network, compute the order from the input
    of the network: its output for equal nodes may differ in the last digits.

    >>> order = canonical_order(GraphBatch(x, batch=batch, edge_index=edge_index)).order
    >>> x, edge_index = x[order], order.argsort()[edge_index]
    >>> edge_index = edge_index[:, (edge_index[0] * len(x) + edge_index[1]).argsort()]

    The last line also sorts the edges, because the last digits of sums over neighbours depend on their order.
    :class:`tfgw.datasets.CanonicalOrder` does all of this for a ``Data``.

    Args:
        graphs: The graphs. All of their tensors distinguish nodes.
        edge_attr: Additional attributes that distinguish edges, ``(num_edges,)`` or ``(num_edges, …)``.
        structure: Matrices that distinguish nodes in addition to the edges of ``graphs``, as in :class:`GraphBatch`.
        effort: Maximum number of search steps per graph, about ten nanoseconds each. Steps are counted, not timed, so
            the result is the same on every machine.
    """
    check_integer("effort", effort, least=0, most=2**63 - 1)
    nodes = graphs.x.shape[0]
    batch = None if graphs.batch is None else _integers(graphs.batch)
    ptr = np.zeros(graphs.num_graphs + 1, dtype=np.int64)
    ptr[1:] = nodes
    if batch is not None:
        _core.offsets(batch, ptr)
    structure = graphs.structure if structure is None else structure
    if structure is not None and structure.numel() != int((np.diff(ptr) ** 2).sum()):
        raise ValueError(f"structure: has {structure.numel()} entries, which does not fit the sizes of the graphs")
    edge_index = edge_rows = None
    if graphs.edge_index is not None:
        edge_index = _integers(graphs.edge_index)
        _check_edges(edge_index, nodes, batch)
        if graphs.edge_weight is not None or edge_attr is not None:
            edge_rows = _rows(edge_index.shape[1], graphs.edge_weight, edge_attr)
    order, exact = np.empty(nodes, dtype=np.int64), np.empty(graphs.num_graphs, dtype=np.int32)
    _core.canonical_orders(
        ptr=ptr,
        node_rows=_rows(nodes, graphs.x, graphs.node_weights),
        edge_index=edge_index,
        edge_rows=edge_rows,
        dense=None if structure is None else _rows(1, structure),
        effort=effort,
        order=order,
        exact=exact,
    )
    device = graphs.x.device
    return NodeOrder(torch.from_numpy(order).to(device), torch.from_numpy(exact == 1).to(device))


def _rows(count: int, *parts: Tensor | None) -> np.ndarray:
    """Concatenate the columns of all parts that are not ``None``."""
    present = [part.detach().to("cpu", torch.float64).numpy() for part in parts if part is not None]
    columns = [part.reshape(count, part.size // max(1, count)) for part in present]
    rows = np.concatenate([np.empty((count, 0)), *columns], axis=1)
    if not np.isfinite(rows).all():
        raise ValueError("graphs: values that are not finite cannot be put in order")
    rows += 0.0  # −0 is 0
    return rows


def _integers(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _check_edges(edge_index: np.ndarray, nodes: int, batch: np.ndarray | None) -> None:
    if edge_index.size == 0:
        return
    if edge_index.min() < 0 or edge_index.max() >= nodes:
        raise ValueError(f"edge_index: points to a node outside 0 to {nodes - 1}")
    if batch is None:
        return
    source, target = batch[edge_index]
    crossing = np.flatnonzero(source != target)
    if crossing.size:
        edge = crossing[0]
        raise ValueError(f"edge_index: edge {edge} joins graph {source[edge]} and graph {target[edge]}")

"""Graphs in an order of nodes and edges that does not depend on how they were numbered."""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.ot import GraphBatch, canonical_order
from tfgw.ot.order import EFFORT


class CanonicalOrder(BaseTransform):
    """Put nodes and edges in canonical order: isomorphic graphs become equal, and so do their embeddings.

    Isomorphic means that edges, ``x``, ``edge_weight``, ``node_weights`` and ``structure`` can be made equal, to the
    last bit; other attributes, which the models here do not see, move along. A solver that breaks ties by node
    order gives isomorphic graphs different distances; after this it cannot. ``dataset.map(CanonicalOrder())`` does
    it once; the estimators and the command line do it by default.

    The search is bounded, by counting its steps. A graph on which it gives up (none in the paper's datasets; incidence
    graphs of projective planes are the kind) is kept in the best order found, with a warning.

    Args:
        edge_attr: Whether ``edge_attr`` tells edges apart too: for models that see it.
        effort: The bound, in steps of about ten nanoseconds.
    """

    def __init__(self, *, edge_attr: bool = False, effort: int = EFFORT) -> None:
        self.edge_attr = edge_attr
        self.effort = effort

    def forward(self, data: Data) -> Data:
        return reordered(data, self._order(data, data.edge_index, torch.tensor([data.num_nodes])))

    def of_dataset(self, dataset: GraphDataset) -> GraphDataset:
        """The same as ``dataset.map(self)``, for all graphs at once."""
        graphs = dataset.compact()
        data, nodes, edges = graphs._data, graphs.slices["x"], graphs.slices["edge_index"]
        sizes, first_node = nodes.diff(), nodes[:-1]
        shift = first_node.repeat_interleave(edges.diff())
        order = self._order(data, data.edge_index + shift, sizes)
        edge_index = _positions(order)[data.edge_index + shift]
        edge_order = _sorted_edges(edge_index, data)
        changed: dict[str, Tensor] = {"edge_index": edge_index[:, edge_order] - shift, "x": data.x[order]}
        if "structure" in graphs.slices:
            local = order - first_node.repeat_interleave(sizes)
            blocks = zip(data.structure.split((sizes**2).tolist()), local.split(sizes.tolist()), strict=True)
            changed["structure"] = torch.cat([_reordered_matrix(matrix, part) for matrix, part in blocks])
        for key in graphs.slices.keys() - changed.keys():
            bounds, value = graphs.slices[key], data[key]
            if not isinstance(value, Tensor):
                continue
            if torch.equal(bounds, edges) and ("edge" in key or not torch.equal(bounds, nodes)):
                changed[key] = value[edge_order]
            elif torch.equal(bounds, nodes):
                changed[key] = value[order]
        return graphs.with_tensors(changed)

    def _order(self, data: Data, edge_index: Tensor, sizes: Tensor) -> Tensor:
        """Canonical order of the nodes of one graph or of several, whose ``edge_index`` counts through all nodes."""
        nodes = int(sizes.sum())
        found = canonical_order(
            GraphBatch(
                data.x.double() if data.x is not None else torch.zeros(nodes, 0, dtype=torch.float64),
                batch=torch.arange(len(sizes)).repeat_interleave(sizes) if len(sizes) > 1 else None,
                edge_index=edge_index,
                edge_weight=_numbers(data.get("edge_weight")),
                node_weights=_numbers(data.get("node_weights")),
            ),
            edge_attr=_numbers(data.get("edge_attr")) if self.edge_attr else None,
            structure=_numbers(data.get("structure")),
            effort=self.effort,
        )
        for size in [] if bool(found.exact.all()) else sizes[~found.exact].tolist():
            warnings.warn(
                f"a graph of {size} nodes is too symmetric to be put in canonical order; its embedding may depend"
                " on how its nodes are numbered",
                stacklevel=2,
            )
        return found.order


def reordered(data: Data, order: Tensor) -> Data:
    """The same graph with its nodes in this order, and its edges sorted by their ends (then by what they carry)."""
    edge_index = _positions(order)[data.edge_index]
    edges = _sorted_edges(edge_index, data)
    for key, value in data.to_dict().items():
        if key == "edge_index":
            data[key] = edge_index[:, edges]
        elif key == "structure":
            data[key] = _reordered_matrix(value, order)
        elif isinstance(value, Tensor) and data.is_edge_attr(key):
            data[key] = value[edges]
        elif isinstance(value, Tensor) and data.is_node_attr(key):
            data[key] = value[order]
    return data


def _sorted_edges(edge_index: Tensor, data: Data) -> Tensor:
    keys = [edge_index[0] * (int(edge_index.max()) + 1) + edge_index[1]] if edge_index.numel() else []
    for name in ("edge_weight", "edge_attr"):
        if data.get(name) is not None:
            keys += list(data[name].flatten(1).T if data[name].dim() > 1 else [data[name]])
    order = torch.arange(edge_index.shape[1])
    for key in reversed(keys):  # the least important first: each sort keeps the order of the one before
        order = order[key[order].argsort(stable=True)]
    return order


def _positions(order: Tensor) -> Tensor:
    """Where each node stands in an order."""
    return torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))


def _reordered_matrix(matrix: Tensor, order: Tensor) -> Tensor:
    return matrix.reshape(len(order), len(order))[order][:, order].reshape(matrix.shape)


def _numbers(value: Any) -> Tensor | None:
    return None if value is None else value.double()

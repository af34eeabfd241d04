"""Canonical order of nodes and edges, which does not depend on their original numbering."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from tfgw.datasets.from_data import Graphs, as_graph_dataset
from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.ot import GraphBatch, canonical_order
from tfgw.ot.order import EFFORT


class CanonicalOrder(BaseTransform):
    """Put nodes and edges into canonical order: isomorphic graphs become equal, and so do their embeddings.

    Isomorphic means that a renumbering makes edges, ``x``, ``edge_weight``, ``node_weights`` and ``structure`` equal,
    bit for bit. Other attributes, which the models do not use, are reordered as well. A solver that breaks ties by node
    order gives isomorphic graphs different distances; the canonical order prevents this.
    ``dataset.map(CanonicalOrder())`` applies it once; the estimators and the command line apply it by default.

    The search has a limit on its number of steps. If it reaches the limit (for no graph of the paper's datasets, but
    for example for incidence graphs of projective planes), the graph keeps the best order found, with a warning.

    Args:
        edge_attr: Whether to distinguish edges by ``edge_attr`` too, for models that use it.
        effort: Maximum number of steps of the search, each about ten nanoseconds.
    """

    def __init__(self, *, edge_attr: bool = False, effort: int = EFFORT) -> None:
        self.edge_attr = edge_attr
        self.effort = effort

    def forward(self, data: Data) -> Data:
        parts = data.to_dict()
        return reordered(data, self._order(parts, data.edge_index, np.array([data.num_nodes])))

    def of_dataset(self, dataset: Graphs) -> GraphDataset:
        """Apply the transform to all graphs at once, with the same result as ``dataset.map(self)``."""
        graphs = as_graph_dataset(dataset).compact()
        parts, slices = graphs.stacked, graphs.slices
        nodes, edges = slices["x"].numpy(), slices["edge_index"].numpy()
        sizes, first_node = nodes[1:] - nodes[:-1], nodes[:-1]
        shift = np.repeat(first_node, edges[1:] - edges[:-1])
        edge_index = parts["edge_index"].numpy() + shift
        order = self._order(parts, torch.from_numpy(edge_index), sizes)
        edge_index, edge_order = _moved_edges(edge_index, order, parts)
        changed: dict[str, Tensor] = {
            "edge_index": torch.from_numpy(edge_index - shift),
            "x": parts["x"].index_select(0, order),
        }
        if "structure" in slices:
            local = order - torch.from_numpy(np.repeat(first_node, sizes))
            blocks = zip(parts["structure"].split((sizes**2).tolist()), local.split(sizes.tolist()), strict=True)
            changed["structure"] = torch.cat([_reordered_matrix(matrix, part) for matrix, part in blocks])
        for key in slices.keys() - changed.keys():
            bounds, value = slices[key].numpy(), parts[key]
            if not isinstance(value, Tensor):
                continue
            if np.array_equal(bounds, edges) and ("edge" in key or not np.array_equal(bounds, nodes)):
                changed[key] = value[edge_order]
            elif np.array_equal(bounds, nodes):
                changed[key] = value[order]
        return graphs.with_tensors(changed)

    def _order(self, parts: Mapping[str, Any], edge_index: Tensor, sizes: np.ndarray) -> Tensor:
        """Return the canonical node order of one or several graphs; ``edge_index`` numbers the nodes of all graphs."""
        x = parts.get("x")
        batch = np.repeat(np.arange(len(sizes)), sizes) if len(sizes) > 1 else None
        found = canonical_order(
            GraphBatch(
                torch.zeros(int(sizes.sum()), 0, dtype=torch.float64) if x is None else x.double(),
                batch=None if batch is None else torch.from_numpy(batch),
                edge_index=edge_index,
                edge_weight=_numbers(parts.get("edge_weight")),
                node_weights=_numbers(parts.get("node_weights")),
            ),
            edge_attr=_numbers(parts.get("edge_attr")) if self.edge_attr else None,
            structure=_numbers(parts.get("structure")),
            effort=self.effort,
        )
        exact = found.exact.numpy()
        for size in () if exact.all() else sizes[~exact]:
            warnings.warn(
                f"a graph of {size} nodes is too symmetric to be put into canonical order; its embedding may depend"
                " on the numbering of its nodes",
                stacklevel=2,
            )
        return found.order


def reordered(data: Data, order: Tensor) -> Data:
    """Return the graph with its nodes in this order, and its edges sorted by their ends, then by their attributes."""
    parts = data.to_dict()
    edge_index, edges = _moved_edges(data.edge_index.numpy(), order, parts)
    for key, value in parts.items():
        if key == "edge_index":
            data[key] = torch.from_numpy(edge_index)
        elif key == "structure":
            data[key] = _reordered_matrix(value, order)
        elif isinstance(value, Tensor) and data.is_edge_attr(key):
            data[key] = value[edges]
        elif isinstance(value, Tensor) and data.is_node_attr(key):
            data[key] = value[order]
    return data


def _moved_edges(edge_index: np.ndarray, order: Tensor, parts: Mapping[str, Any]) -> tuple[np.ndarray, Tensor]:
    """Return the renumbered and sorted edges, and the permutation that sorts them."""
    # NumPy is much faster than PyTorch on a small graph.
    nodes = len(order)
    place = np.empty(nodes, dtype=np.int64)
    place[order.numpy()] = np.arange(nodes)
    moved = place[edge_index]
    keys = [moved[0] * nodes + moved[1]]
    for name in ("edge_weight", "edge_attr"):
        if (value := _numbers(parts.get(name))) is not None:
            keys += list(value.reshape(len(value), -1).numpy().T)
    edges = np.lexsort(keys[::-1])  # the last key is the most important one
    return moved.take(edges, axis=1), torch.from_numpy(edges)


def _reordered_matrix(matrix: Tensor, order: Tensor) -> Tensor:
    return matrix.reshape(len(order), len(order))[order][:, order].reshape(matrix.shape)


def _numbers(value: Any) -> Tensor | None:
    return None if value is None else value.double()

"""Input of the solver: a ragged batch of graphs, and the templates that they are compared with.

The checks in this module use only shapes, dtypes and devices, so they also run while a model is traced. The core
checks values before it starts.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

LARGEST = 2**31 - 1
"""Largest integer option: native code stores options in 32 bits."""


@dataclass(frozen=True)
class GraphBatch:
    """Graphs (C, F, h) of different sizes, with stacked nodes as in PyTorch Geometric.

    Args:
        x: Node features F, ``(num_nodes, num_features)``.
        batch: Graph of each node, sorted, ``(num_nodes,)``; ``None`` for a single graph.
        batch_size: Number of graphs. If it exceeds the number of graphs in ``batch``, trailing graphs are empty:
            their distances are 0 and have no gradient. If ``None``, the graphs in ``batch`` are counted.
        edge_index: Sparse structure C, ``(2, num_edges)``: each column is an entry (i, j) of C. List both directions
            of an undirected edge; a single direction makes C asymmetric.
        edge_weight: Value of each entry, ``(num_edges,)``; repeated entries add up. If ``None``, edges are a set:
            all entries are 1, even if they are repeated, and self-loops are ignored.
        structure: Dense structure instead of edges: the n × n matrices of all graphs, flattened row by row and
            concatenated, ``(sum of n²,)``. A single graph may also be given as ``(n, n)``.
        node_weights: h, ``(num_nodes,)``, summing to 1 within each graph; ``None`` for uniform weights.
    """

    x: Tensor
    batch: Tensor | None = None
    batch_size: int | None = None
    edge_index: Tensor | None = None
    edge_weight: Tensor | None = None
    structure: Tensor | None = None
    node_weights: Tensor | None = None

    def __post_init__(self) -> None:
        check_floating("x", self.x, 2, "(num_nodes, num_features)")
        if self.x.shape[0] == 0:
            raise ValueError("x: the batch has no nodes")
        nodes = self.x.shape[0]
        if self.batch is not None:
            _check_indices("batch", self.batch, 1, "(num_nodes,)")
            _check_size("batch", self.batch, 0, nodes, "x has")
        if self.batch_size is not None:
            check_integer("batch_size", self.batch_size)
        if self.edge_index is not None:
            if self.structure is not None:
                raise ValueError("structure: give either edge_index or structure, not both")
            _check_indices("edge_index", self.edge_index, 2, "(2, num_edges)")
            _check_size("edge_index", self.edge_index, 0, 2, "its shape is (2, num_edges):")
        if self.edge_weight is not None:
            if self.edge_index is None:
                raise ValueError("edge_weight: needs edge_index")
            check_floating("edge_weight", self.edge_weight, 1, "(num_edges,)")
            _check_size("edge_weight", self.edge_weight, 0, self.edge_index.shape[1], "edge_index has")
        if self.structure is not None:
            if self.structure.dim() not in (1, 2):
                raise ValueError(
                    f"structure: expected the flattened matrices (sum of n²,) or one (n, n) matrix, "
                    f"got shape {tuple(self.structure.shape)}"
                )
            check_floating("structure", self.structure, self.structure.dim(), "")
        if self.node_weights is not None:
            check_floating("node_weights", self.node_weights, 1, "(num_nodes,)")
            _check_size("node_weights", self.node_weights, 0, nodes, "x has")
        check_same_device(
            "x",
            self.x,
            batch=self.batch,
            edge_index=self.edge_index,
            edge_weight=self.edge_weight,
            structure=self.structure,
            node_weights=self.node_weights,
        )

    @property
    def num_graphs(self) -> int:
        """Number of graphs, including empty trailing ones. Reads ``batch`` unless ``batch_size`` was given."""
        if self.batch_size is not None:
            return self.batch_size
        if self.batch is None:
            return 1
        return count_graphs(self.batch)


@dataclass(frozen=True)
class Templates:
    """K template graphs (C̄, F̄, h̄) of equal size.

    Args:
        features: F̄, ``(num_templates, template_nodes, num_features)``.
        structure: C̄, ``(num_templates, template_nodes, template_nodes)``; ``None`` compares features only.
        weights: h̄, ``(num_templates, template_nodes)``, each row summing to 1; ``None`` for uniform weights. Nodes of
            weight 0 are ignored by the solver.
    """

    features: Tensor
    structure: Tensor | None = None
    weights: Tensor | None = None

    def __post_init__(self) -> None:
        check_floating("template_features", self.features, 3, "(num_templates, template_nodes, num_features)")
        count, nodes, _ = self.features.shape
        if count == 0 or nodes == 0:
            raise ValueError(f"template_features: needs templates with nodes, got shape {tuple(self.features.shape)}")
        if self.structure is not None:
            check_floating("template_structure", self.structure, 3, "(num_templates, template_nodes, template_nodes)")
            if tuple(self.structure.shape) != (count, nodes, nodes):
                raise ValueError(
                    f"template_structure: expected shape {(count, nodes, nodes)} to fit template_features, "
                    f"got {tuple(self.structure.shape)}"
                )
        if self.weights is not None:
            check_floating("template_weights", self.weights, 2, "(num_templates, template_nodes)")
            if tuple(self.weights.shape) != (count, nodes):
                raise ValueError(
                    f"template_weights: expected shape {(count, nodes)} to fit template_features, "
                    f"got {tuple(self.weights.shape)}"
                )
        check_same_device(
            "template_features",
            self.features,
            template_structure=self.structure,
            template_weights=self.weights,
        )


def count_graphs(batch: Tensor) -> int:
    """Count the graphs in ``batch``. This reads the tensor."""
    return number_of(int(batch.max()), batch)


def number_of(last: int, batch: Tensor) -> int:
    """Return the number of graphs in ``batch``, whose last graph is ``last``."""
    if last >= len(batch):  # before memory is allocated for graphs that cannot all have nodes
        check_sorted(batch)
        present = set(batch.tolist())
        raise ValueError(f"batch: graph {next(b for b in range(last) if b not in present)} has no nodes")
    return last + 1


def check_sorted(batch: Tensor) -> None:
    """Raise ``ValueError`` if ``batch`` is not sorted; the message names the first such node. This reads the tensor."""
    unsorted = (batch[1:] < batch[:-1]).nonzero()
    if len(unsorted):
        node = int(unsorted[0]) + 1
        before, graph = batch[node - 1 : node + 1].tolist()
        raise ValueError(
            f"batch: must be sorted, but node {node} of graph {graph} comes after a node of graph {before}"
        )


def check_integer(name: str, value: int, *, least: int = 1, most: int = LARGEST) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer between ``least`` and ``most``."""
    if type(value) is not int and not isinstance(value, np.integer | torch.SymInt):
        raise ValueError(f"{name}: expected an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name}: must be at least {least}, got {value}")
    if value > most:
        raise ValueError(f"{name}: must be at most {most}, got {value}")


def check_floating(name: str, tensor: Tensor, dim: int, shape: str) -> None:
    """Raise ``ValueError`` unless ``tensor`` is a dense floating-point tensor with ``dim`` dimensions."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if not tensor.is_floating_point():
        raise ValueError(f"{name}: expected a floating-point dtype, got {tensor.dtype}")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name}: expected a dense tensor, got layout {tensor.layout}")
    if tensor.dim() != dim:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")


def _check_indices(name: str, tensor: Tensor, dim: int, shape: str) -> None:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if tensor.dtype != torch.int64:
        raise ValueError(f"{name}: expected dtype torch.int64, got {tensor.dtype}")
    if tensor.dim() != dim:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")


def _check_size(name: str, tensor: Tensor, dim: int, expected: int, why: str) -> None:
    if tensor.shape[dim] != expected:
        raise ValueError(f"{name}: has {tensor.shape[dim]} entries, but {why} {expected}")


def check_same_device(first_name: str, first: Tensor, **others: Tensor | None) -> None:
    """Raise ``ValueError`` if one of ``others`` is on a different device than ``first``; the message names it."""
    device = first.device
    for name, other in others.items():
        if other is not None and other.device != device:
            raise ValueError(f"{name}: is on {other.device}, but {first_name} is on {device}")

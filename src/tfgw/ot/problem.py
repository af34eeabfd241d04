"""The problem as data: a ragged batch of graphs, and the templates they are compared with.

Checks here look at shapes, dtypes and devices only, so they also run while a model is traced; what has to look at
values is checked by the core, before it starts.
"""

from dataclasses import dataclass
from math import isqrt
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class GraphBatch:
    """Graphs (C, F, h) of different sizes, their nodes stacked as in PyTorch Geometric.

    Args:
        x: Node features F, ``(num_nodes, num_features)``.
        batch: Graph of each node, sorted, ``(num_nodes,)``; ``None`` is a single graph.
        batch_size: Number of graphs. Where it exceeds the last graph in ``batch``, the graphs at the end are empty:
            their distances are 0 and carry no gradient. ``None`` counts the graphs in ``batch``.
        edge_index: Sparse structure C, ``(2, num_edges)``: entry (i, j) of C for each column. Both directions of
            an undirected edge are listed. Entries listed several times add up.
        edge_weight: Value of each entry, ``(num_edges,)``; ``None`` is 1.
        structure: Dense structure instead of edges: the n × n matrices of all graphs, flattened row by row, one
            after the other, ``(sum of n²,)``; for a single graph also ``(n, n)``.
        node_weights: h, ``(num_nodes,)``, summing to 1 within each graph; ``None`` is uniform.
    """

    x: Tensor
    batch: Tensor | None = None
    batch_size: int | None = None
    edge_index: Tensor | None = None
    edge_weight: Tensor | None = None
    structure: Tensor | None = None
    node_weights: Tensor | None = None

    def __post_init__(self) -> None:
        _floating("x", self.x, 2, "(num_nodes, num_features)")
        if self.x.shape[0] == 0:
            raise ValueError("x: the batch has no nodes")
        nodes = self.x.shape[0]
        if self.batch is not None:
            _integer("batch", self.batch, 1, "(num_nodes,)")
            _size("batch", self.batch, 0, nodes, "x has")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"batch_size: must be at least 1, got {self.batch_size}")
        if self.edge_index is not None:
            if self.structure is not None:
                raise ValueError("structure: give either edge_index or structure, not both")
            _integer("edge_index", self.edge_index, 2, "(2, num_edges)")
            _size("edge_index", self.edge_index, 0, 2, "its shape is (2, num_edges):")
        if self.edge_weight is not None:
            if self.edge_index is None:
                raise ValueError("edge_weight: needs edge_index")
            _floating("edge_weight", self.edge_weight, 1, "(num_edges,)")
            _size("edge_weight", self.edge_weight, 0, self.edge_index.shape[1], "edge_index has")
        if self.structure is not None:
            if self.structure.dim() not in (1, 2):
                raise ValueError(
                    f"structure: expected the flattened matrices (sum of n²,) or one (n, n) matrix, "
                    f"got shape {tuple(self.structure.shape)}"
                )
            _floating("structure", self.structure, self.structure.dim(), "")
        if self.node_weights is not None:
            _floating("node_weights", self.node_weights, 1, "(num_nodes,)")
            _size("node_weights", self.node_weights, 0, nodes, "x has")
        _same_device(
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
        """Number of graphs, empty ones at the end included. Reads ``batch`` unless ``batch_size`` was given."""
        if self.batch_size is not None:
            return self.batch_size
        if self.batch is None:
            return 1
        last = int(self.batch.max())
        if last >= len(self.batch):  # before room is made for graphs that cannot all have nodes
            present = set(self.batch.tolist())
            raise ValueError(f"batch: graph {next(b for b in range(last) if b not in present)} has no nodes")
        return last + 1


class SharedEntries(NamedTuple):
    """Structures C̄ by their free entries, which several places may share; other places are fixed at 0."""

    entries: Tensor
    """``(num_templates, num_entries)``."""
    entry_at: Tensor
    """Which entry stands at each place, row by row; any where the place is fixed: ``(num_templates, m²)``."""
    is_free: Tensor | None
    """1 or 0 for each place, ``(m²,)``; ``None`` where all are free."""
    places: Tensor
    """The two places of each entry, the same twice if it has one, ``(num_entries, 2)``."""

    def dense(self) -> Tensor:
        """C̄, ``(num_templates, m, m)``."""
        count, nodes = len(self.entries), isqrt(self.entry_at.shape[1])
        if self.is_free is None:
            return self.entries.gather(1, self.entry_at).view(count, nodes, nodes)
        if not self.entries.shape[1]:
            return self.is_free.expand(count, nodes, nodes)
        # A product, not zeros to choose from: its gradient is cheap, and so is that of `gather` alone.
        return (self.entries.gather(1, self.entry_at) * self.is_free).view(count, nodes, nodes)

    def folded(self, grad: Tensor) -> Tensor:
        """The gradient of the entries, from that of C̄."""
        grad = grad.flatten(1)[:, self.places].sum(-1)
        return torch.where(self.places[:, 0] == self.places[:, 1], grad / 2, grad)


@dataclass(frozen=True)
class Templates:
    """K template graphs (C̄, F̄, h̄) of equal size.

    Args:
        features: F̄, ``(num_templates, template_nodes, num_features)``.
        structure: C̄, ``(num_templates, template_nodes, template_nodes)``; ``None`` compares features only.
        weights: h̄, ``(num_templates, template_nodes)``, each row summing to 1; ``None`` is uniform. Nodes of weight
            zero take no part in the solve.
    """

    features: Tensor
    structure: Tensor | None = None
    weights: Tensor | None = None

    def __post_init__(self) -> None:
        _floating("template_features", self.features, 3, "(num_templates, template_nodes, num_features)")
        count, nodes, _ = self.features.shape
        if count == 0 or nodes == 0:
            raise ValueError(f"template_features: needs templates with nodes, got shape {tuple(self.features.shape)}")
        if self.structure is not None:
            _floating("template_structure", self.structure, 3, "(num_templates, template_nodes, template_nodes)")
            if tuple(self.structure.shape) != (count, nodes, nodes):
                raise ValueError(
                    f"template_structure: expected shape {(count, nodes, nodes)} to fit template_features, "
                    f"got {tuple(self.structure.shape)}"
                )
        if self.weights is not None:
            _floating("template_weights", self.weights, 2, "(num_templates, template_nodes)")
            if tuple(self.weights.shape) != (count, nodes):
                raise ValueError(
                    f"template_weights: expected shape {(count, nodes)} to fit template_features, "
                    f"got {tuple(self.weights.shape)}"
                )
        _same_device(
            "template_features",
            self.features,
            template_structure=self.structure,
            template_weights=self.weights,
        )


def check_pair(graphs: GraphBatch, templates: Templates, shared: SharedEntries | None = None) -> None:
    """Raise ``ValueError`` unless graphs and templates can be compared with each other.

    ``shared`` are the templates' structures, if not with them.
    """
    if graphs.x.shape[1] != templates.features.shape[2]:
        raise ValueError(
            f"x: graphs have {graphs.x.shape[1]} features per node, template_features has {templates.features.shape[2]}"
        )
    has_structure = graphs.edge_index is not None or graphs.structure is not None
    if has_structure and templates.structure is None and shared is None:
        raise ValueError("template_structure: missing, but the graphs have a structure")
    if not has_structure and (templates.structure is not None or shared is not None):
        raise ValueError("edge_index: missing, but the templates have a structure (give edge_index or structure)")
    _same_device("x", graphs.x, template_features=templates.features)
    if shared is not None:
        _floating("template_structure", shared.entries, 2, "(num_templates, num_entries)")
        _same_device("template_features", templates.features, template_structure=shared.entries)


def check_start(initial_plans: Tensor | None, graphs: GraphBatch, templates: Templates) -> None:
    """Raise ``ValueError`` unless there is one entry for each node of the batch and each template node."""
    if initial_plans is None:
        return
    _floating("initial_plans", initial_plans, 3, "(num_nodes, num_templates, template_nodes)")
    expected = (graphs.x.shape[0], *templates.features.shape[:2])
    if tuple(initial_plans.shape) != expected:
        raise ValueError(f"initial_plans: expected shape {expected}, got {tuple(initial_plans.shape)}")
    _same_device("x", graphs.x, initial_plans=initial_plans)


def check_options(*, max_iter: int, tol: float, n_starts: int) -> None:
    """Raise ``ValueError`` unless a solver can work with these."""
    for name, value in (("max_iter", max_iter), ("n_starts", n_starts)):
        if value < 1:
            raise ValueError(f"{name}: must be at least 1, got {value}")
    if not tol >= 0:
        raise ValueError(f"tol: must not be negative, got {tol}")


def checked_alpha(alpha: float | Tensor, templates: Templates) -> Tensor:
    """One trade-off per template, ``(num_templates,)``, or a single one, in any shape."""
    features = templates.features
    if not isinstance(alpha, Tensor):
        if not isinstance(alpha, Real):
            raise ValueError(f"alpha: expected a number or a tensor, got {type(alpha).__name__}")
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha: must lie in [0, 1], but is {alpha}")
        return features.new_full((features.shape[0],), alpha)
    _floating("alpha", alpha, alpha.dim(), "")
    _same_device("template_features", features, alpha=alpha)
    if alpha.dim() == 1 and alpha.shape[0] == features.shape[0]:
        return alpha
    if alpha.numel() != 1:
        raise ValueError(
            f"alpha: expected a scalar or one value for each of {features.shape[0]} templates, "
            f"got shape {tuple(alpha.shape)}"
        )
    return alpha


def expand_alpha(alpha: Tensor, count: int) -> Tensor:
    """One trade-off per template: copied here, once, for solver and gradients to read."""
    if alpha.dim() == 1 and alpha.shape[0] == count:
        return alpha
    return (alpha if alpha.dim() < 2 else alpha.reshape(1)).expand(count).contiguous()


def _floating(name: str, tensor: Tensor, dim: int, shape: str) -> None:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if not tensor.is_floating_point():
        raise ValueError(f"{name}: expected a floating-point dtype, got {tensor.dtype}")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name}: expected a dense tensor, got layout {tensor.layout}")
    if tensor.dim() != dim:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")


def _integer(name: str, tensor: Tensor, dim: int, shape: str) -> None:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    if tensor.dtype != torch.int64:
        raise ValueError(f"{name}: expected dtype torch.int64, got {tensor.dtype}")
    if tensor.dim() != dim:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")


def _size(name: str, tensor: Tensor, dim: int, expected: int, why: str) -> None:
    if tensor.shape[dim] != expected:
        raise ValueError(f"{name}: has {tensor.shape[dim]} entries, but {why} {expected}")


def _same_device(first_name: str, first: Tensor, **others: Tensor | None) -> None:
    device = first.device
    for name, other in others.items():
        if other is not None and other.device != device:
            raise ValueError(f"{name}: is on {other.device}, but {first_name} is on {device}")

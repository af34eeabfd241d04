"""The problem as data: everything that travels from the public functions to the backends, and what comes back.

solve (public) ─▶ checks ─▶ Problem ─▶ operators ─▶ backends/cpu | backends/cuda ─▶ native code ─▶ Solution
"""

from collections.abc import Callable
from functools import cache
from math import isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

MAX_ITER = 1000
"""Frank–Wolfe iterations of a start at most."""
TOL = 1e-9
"""Gap, relative to the value, at which a start has converged."""

RESULTS, PLANS, GRADIENTS, DIAGNOSIS = 1, 2, 4, 8
"""What a backend is to return besides distances, as bits: the results of each pair, their plans and potentials with
them, what its backward pass needs, and a diagnosis (CPU only)."""


class StructurePattern(NamedTuple):
    """Which places of template structures C̄ their free entries stand at. Other places are fixed at 0."""

    entry_at: Tensor
    """The entry at each place, row by row; any number where the place is fixed: ``(num_templates, m²)``."""
    is_free: Tensor | None
    """1 or 0 for each place, ``(m²,)``; ``None`` where all are free."""
    places: Tensor
    """The two places of each entry, the same twice if it has one, ``(num_entries, 2)``."""

    def dense(self, entries: Tensor) -> Tensor:
        """C̄, ``(num_templates, m, m)``, from its free entries ``(num_templates, num_entries)``."""
        count, nodes = len(entries), isqrt(self.entry_at.shape[1])
        if self.is_free is None:
            return entries.gather(1, self.entry_at).view(count, nodes, nodes)
        if not entries.shape[1]:
            return self.is_free.expand(count, nodes, nodes)
        # A product, not zeros to choose from: its gradient is cheap, and so is that of `gather` alone.
        return (entries.gather(1, self.entry_at) * self.is_free).view(count, nodes, nodes)


class Problem(NamedTuple):
    """B graphs with N nodes in all, K templates of m nodes, and how to compare them.

    The fields are those of :class:`tfgw.ot.GraphBatch`, :class:`tfgw.ot.Templates` and :func:`tfgw.ot.fgw`. Their order
    stands here and nowhere else: it is the order of the operators' arguments (up to ``pattern``), and native code finds
    fields by name (bindings/given_problem.hpp).
    """

    x: Tensor
    batch: Tensor | None
    batch_size: int | None
    """``None`` only until the problem is checked."""
    node_weights: Tensor | None
    edge_index: Tensor | None
    edge_weight: Tensor | None
    structure: Tensor | None
    template_structure: Tensor | None
    """C̄, ``(K, m, m)``; with a ``pattern`` its free entries, ``(K, num_entries)``."""
    template_features: Tensor
    template_weights: Tensor
    alpha: Tensor
    """One per template; with a ``pattern`` also a single one, in any shape."""
    cost: Tensor | None = None
    """Given costs ``(N, K, m)`` in place of squared feature distances."""
    initial_plans: Tensor | None = None
    max_iter: int = MAX_ITER
    tol: float = TOL
    n_starts: int = 1
    start_kinds: int = 1
    """As bits, see :func:`tfgw.ot.starts.start_bits`."""
    num_threads: int = 0
    """0 follows :func:`torch.get_num_threads`, which cannot be asked while a model is traced."""
    pattern: StructurePattern | None = None
    padded_nodes: bool = False
    """Whether trailing nodes, with ``batch_size`` as their graph, are padding: they have no results, and gradient 0."""

    @property
    def differentiable(self) -> tuple[Tensor | None, ...]:
        """The tensors that may have a gradient, in the order in which backends return gradients."""
        fields: tuple[Any, ...] = self
        return tuple([fields[place] for place in _DIFFERENTIABLE_PLACES])

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that a backward pass reads."""
        fields: tuple[Any, ...] = self
        return tuple([fields[place] for place in _TENSOR_PLACES])

    @property
    def num_graphs(self) -> int:
        """``batch_size`` of a checked problem."""
        assert self.batch_size is not None
        return self.batch_size

    def needs_grad(self) -> bool:
        """Whether a gradient may be asked for."""
        if torch.is_grad_enabled():
            for tensor in self.differentiable:
                if tensor is not None and tensor.requires_grad:
                    return True
        return False

    def of_size(self, batch_size: int) -> "Problem":
        """The same problem with its graphs counted; like ``_replace``, in half the time."""
        return Problem._make((*self[:_SIZE_PLACE], batch_size, *self[_SIZE_PLACE + 1 :]))

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> "Problem":
        """The same problem with every tensor replaced."""
        return Problem._make(function(value) if isinstance(value, Tensor) else value for value in self)

    def dense(self) -> "Problem":
        """The same problem with structures as matrices and one α per template: what the operators take."""
        structure, count = self.template_structure, self.template_weights.shape[0]
        if self.pattern is not None and structure is not None:
            structure = self.pattern.dense(structure)
        return self._replace(template_structure=structure, alpha=expanded(self.alpha, count), pattern=None)

    def unpadded(self) -> "Problem":
        """The same problem without padding. Counting it waits for the GPU."""
        if not self.padded_nodes or self.batch is None:
            return self
        nodes = int(self.batch.ne(self.num_graphs).sum())
        edges = None if self.edge_index is None else self.edge_index[0] < nodes
        return self._replace(
            x=self.x[:nodes],
            batch=self.batch[:nodes],
            node_weights=None if self.node_weights is None else self.node_weights[:nodes],
            edge_index=None if self.edge_index is None else self.edge_index[:, edges],
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            padded_nodes=False,
        )

    @property
    def weight_tolerance(self) -> float:
        """How far weights may be from a sum of 1."""
        other = self.template_features if self.cost is None else self.template_weights
        return weight_tolerance(self.x.dtype, other.dtype)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the results; they are computed in float64."""
        return torch.promote_types(self.x.dtype, self.template_features.dtype)


DIFFERENTIABLE = (
    "x", "node_weights", "edge_weight", "structure",
    "template_structure", "template_features", "template_weights", "alpha",
)  # fmt: skip
_DIFFERENTIABLE_PLACES = [Problem._fields.index(name) for name in DIFFERENTIABLE]
_TENSOR_PLACES = [*_DIFFERENTIABLE_PLACES, Problem._fields.index("batch"), Problem._fields.index("edge_index")]
_SIZE_PLACE = Problem._fields.index("batch_size")
NUM_OPERATOR_FIELDS = Problem._fields.index("pattern")


class Results(NamedTuple):
    """What :class:`tfgw.ot.Transport` has besides the distances; without plans, the last three are empty."""

    structure_costs: Tensor
    feature_costs: Tensor
    gaps: Tensor
    iterations: Tensor
    status: Tensor
    plans: Tensor
    graph_potentials: Tensor
    template_potentials: Tensor

    @property
    def for_backward(self) -> tuple[Tensor, ...]:
        """What a backward pass reads."""
        return (*self[:2], *self[5:])


class Solution(NamedTuple):
    """What a backend returns; ``None`` for what was not asked for."""

    distances: Tensor
    results: Results | None = None
    diagnosis: tuple[Tensor, ...] | None = None
    """Spreads, lower bounds, and whether each plan is a local minimum."""
    state: Any = None
    """What the backend's backward pass needs besides the problem, but for tensors:"""
    saved: tuple[Tensor | None, ...] = ()


@cache
def weight_tolerance(*dtypes: torch.dtype) -> float:
    """How far weights of these precisions may be from a sum of 1: a few rounding errors per node."""
    return min(0.05, max(1e-6, *(100 * torch.finfo(dtype).eps for dtype in dtypes)))


def expanded(alpha: Tensor, count: int) -> Tensor:
    """One trade-off per template: copied here, once, for solver and gradients to read."""
    if alpha.dim() == 1 and alpha.shape[0] == count:
        return alpha
    return (alpha if alpha.dim() < 2 else alpha.reshape(1)).expand(count).contiguous()

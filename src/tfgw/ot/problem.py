"""The data types that the public functions and the backends exchange.

solve (public) ─▶ checks ─▶ Problem ─▶ dispatch ─▶ backends/cpu | backends/cuda ─▶ native code ─▶ Solution
"""

from collections.abc import Callable
from functools import cache
from math import isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.ot import _core  # the C++ extension

MAX_ITER = 1000
"""Maximum number of Frank–Wolfe iterations per start."""
TOL = 1e-9
"""Gap, relative to the value, at which a start has converged."""

RESULTS, PLANS, GRADIENTS, DIAGNOSIS = _core.RESULTS, _core.PLANS, _core.GRADIENTS, _core.DIAGNOSIS
"""Flags for what a backend returns in addition to distances: the results of each pair, their plans and potentials, the
data for the backward pass, and a diagnosis."""


class StructurePattern(NamedTuple):
    """Positions of the free entries of template structures C̄. All other positions are fixed at 0."""

    entry_at: Tensor
    """Index of the entry at each position, row by row, ``(num_templates, m²)``; arbitrary at fixed positions."""
    is_free: Tensor | None
    """1 for free and 0 for fixed positions, ``(m²,)``; ``None`` if all are free."""
    places: Tensor
    """The two positions of each entry, ``(num_entries, 2)``; the same position twice if it has only one."""

    def dense(self, entries: Tensor) -> Tensor:
        """Return C̄, ``(num_templates, m, m)``, from its free entries ``(num_templates, num_entries)``."""
        count, nodes = len(entries), isqrt(self.entry_at.shape[1])
        if self.is_free is None:
            return entries.gather(1, self.entry_at).view(count, nodes, nodes)
        if not entries.shape[1]:
            return self.is_free.expand(count, nodes, nodes)
        # A product instead of `where`, because the gradients of a product and of `gather` are cheap.
        return (entries.gather(1, self.entry_at) * self.is_free).view(count, nodes, nodes)


class ProblemSize(NamedTuple):
    """What decides whether a GPU has room and kernels for a problem."""

    num_graphs: int
    num_nodes: int
    """Number of nodes of all graphs."""
    num_templates: int
    template_nodes: int
    has_initial_plans: bool = False
    n_starts: int = 1
    start_kinds: int = 1
    """As in :class:`Problem`."""


class Problem(NamedTuple):
    """B graphs with N nodes in total, K templates of m nodes, and the options to compare them.

    The fields are those of :class:`tfgw.ot.GraphBatch`, :class:`tfgw.ot.Templates` and :func:`tfgw.ot.fgw`. Their order
    is defined only here: the operators take them in this order (up to ``pattern``), and native code finds fields by
    name (bindings/problem_view.hpp).
    """

    x: Tensor
    batch: Tensor | None
    batch_size: int | None
    """``None`` only before the problem is checked."""
    node_weights: Tensor | None
    edge_index: Tensor | None
    edge_weight: Tensor | None
    structure: Tensor | None
    template_structure: Tensor | None
    """C̄, ``(K, m, m)``; with a ``pattern``, its free entries, ``(K, num_entries)``."""
    template_features: Tensor
    template_weights: Tensor
    alpha: Tensor
    """One value per template; with a ``pattern``, a single value of any shape is also allowed."""
    cost: Tensor | None = None
    """Costs ``(N, K, m)`` that replace squared feature distances."""
    initial_plans: Tensor | None = None
    max_iter: int = MAX_ITER
    tol: float = TOL
    n_starts: int = 1
    start_kinds: int = 1
    """Bit mask; see :func:`tfgw.ot.starts.start_bits`."""
    num_threads: int = 0
    """0 follows :func:`torch.get_num_threads`, which cannot be called while a model is traced."""
    pattern: StructurePattern | None = None
    padded_nodes: bool = False
    """Whether trailing nodes, whose graph is ``batch_size``, are padding. They have no results and zero gradients."""
    skipped: Tensor | None = None
    """1 for pairs that need not be solved, ``(B, K)`` in uint8. A GPU gives them the distance 0 and the status
    ``EMPTY``, and the CPU solves them. There are no gradients."""
    concurrent_solves: int = 1
    """Number of problems that a GPU solves at the same time. Each uses its share of the multiprocessors."""

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

    @property
    def size(self) -> ProblemSize:
        """The size of a checked problem."""
        num_templates, template_nodes = self.template_weights.shape
        return ProblemSize(
            num_graphs=self.num_graphs,
            num_nodes=self.x.shape[0],
            num_templates=num_templates,
            template_nodes=template_nodes,
            has_initial_plans=self.initial_plans is not None,
            n_starts=self.n_starts,
            start_kinds=self.start_kinds,
        )

    def needs_grad(self) -> bool:
        """Whether a gradient may be requested."""
        if torch.is_grad_enabled():
            for tensor in self.differentiable:
                if tensor is not None and tensor.requires_grad:
                    return True
        return False

    def of_size(self, batch_size: int) -> "Problem":
        """Return a copy with this ``batch_size``; twice as fast as ``_replace``."""
        return Problem._make((*self[:_SIZE_PLACE], batch_size, *self[_SIZE_PLACE + 1 :]))

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> "Problem":
        """Apply a function to every tensor."""
        return Problem._make(function(value) if isinstance(value, Tensor) else value for value in self)

    def dense(self) -> "Problem":
        """Return the problem with structures as matrices and one α per template, as the operators require."""
        structure, count = self.template_structure, self.template_weights.shape[0]
        if self.pattern is not None and structure is not None:
            structure = self.pattern.dense(structure)
        return self._replace(template_structure=structure, alpha=expanded(self.alpha, count), pattern=None)

    def unpadded(self) -> "Problem":
        """Return the problem without padding. Counting the padding synchronizes with the GPU."""
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
        """Maximum deviation of the sum of weights from 1."""
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


class SolvedPairs(NamedTuple):
    """The results that a backward pass reads."""

    structure_costs: Tensor
    feature_costs: Tensor
    plans: Tensor
    graph_potentials: Tensor
    template_potentials: Tensor


class Results(NamedTuple):
    """The fields of :class:`tfgw.ot.Transport` except for the distances. Without plans, the last three are empty."""

    structure_costs: Tensor
    feature_costs: Tensor
    gaps: Tensor
    iterations: Tensor
    status: Tensor
    plans: Tensor
    graph_potentials: Tensor
    template_potentials: Tensor

    @property
    def for_backward(self) -> SolvedPairs:
        """The results that a backward pass reads."""
        return SolvedPairs(
            structure_costs=self.structure_costs,
            feature_costs=self.feature_costs,
            plans=self.plans,
            graph_potentials=self.graph_potentials,
            template_potentials=self.template_potentials,
        )


class Solution(NamedTuple):
    """The result of a backend; ``None`` for parts that were not requested."""

    distances: Tensor
    results: Results | None = None
    diagnosis: tuple[Tensor, ...] | None = None
    """Spreads, lower bounds, and whether each plan is a local minimum; of a GPU only the spreads."""
    state: Any = None
    """Data other than tensors that the backend's backward pass needs in addition to the problem."""
    saved: tuple[Tensor | None, ...] = ()
    """Tensors that the backend's backward pass needs in addition to the problem."""

    def in_precision(self, dtype: torch.dtype) -> "Solution":
        """Convert distances, costs and gaps to the precision of the input."""
        results = self.results
        if results is not None:
            results = results._replace(
                structure_costs=results.structure_costs.to(dtype),
                feature_costs=results.feature_costs.to(dtype),
                gaps=results.gaps.to(dtype),
            )
        return self._replace(distances=self.distances.to(dtype), results=results)


@cache
def weight_tolerance(*dtypes: torch.dtype) -> float:
    """Return the maximum deviation of a sum of weights from 1 for these dtypes: a few rounding errors per node."""
    return min(0.05, max(1e-6, *(100 * torch.finfo(dtype).eps for dtype in dtypes)))


def expanded(alpha: Tensor, count: int) -> Tensor:
    """Return one trade-off per template. The copy is made once, for the solver and for the gradients."""
    if alpha.dim() == 1 and alpha.shape[0] == count:
        return alpha
    return (alpha if alpha.dim() < 2 else alpha.reshape(1)).expand(count).contiguous()

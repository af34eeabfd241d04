"""Exact, differentiable distances between every graph of a batch and every template."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.checks import checked, problem_of, thread_count, uniform_weights
from tfgw.ot.derivative import linear_distances
from tfgw.ot.dispatch import solve
from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.problem import MAX_ITER, PLANS, RESULTS, TOL, Problem, Results, Solution
from tfgw.ot.starts import START_KINDS, start_bits


class Status(IntEnum):
    """How the solve of a pair ended."""

    CONVERGED = 0
    """The gap is within the tolerance."""
    MAX_ITER = 1
    """The maximum number of iterations was reached."""
    EMPTY = 2
    """The graph has no nodes."""
    IMPRECISE = 3
    """The costs differ by so many powers of ten that a GPU cannot reach the tolerance. The CPU can."""


class Transport(NamedTuple):
    """Result of a solver for B graphs with N nodes in total, and K templates of m nodes.

    Attributes:
        distances: ``(B, K)``. They are differentiable; all other fields are not.
        structure_costs: Gromov–Wasserstein term at the plan (without its factor α), ``(B, K)``.
        feature_costs: Wasserstein term at the plan (without its factor 1−α), ``(B, K)``.
        plans: ``(N, K, m)`` in float64: row i of a graph's plan for template k is at ``[first node + i, k]``. With
            ``plans="sparse"``, a sparse COO tensor; ``None`` if not requested.
        graph_potentials: Dual potentials of the graphs' nodes, ``(N, K)``; ``None`` without plans.
        template_potentials: Dual potentials of the templates' nodes, with mean 0 over nodes of positive weight,
            ``(B, K, m)``; ``None`` without plans.
        iterations: Frank–Wolfe iterations of the best start, ``(B, K)``.
        gaps: Frank–Wolfe gap at the plan, ``(B, K)``. No coupling has a linearised cost that is lower by more than the
            gap.
        status: :class:`Status` of each pair, ``(B, K)``.
    """

    distances: Tensor
    structure_costs: Tensor
    feature_costs: Tensor
    plans: Tensor | None
    graph_potentials: Tensor | None
    template_potentials: Tensor | None
    iterations: Tensor
    gaps: Tensor
    status: Tensor


def fgw(
    graphs: GraphBatch,
    templates: Templates,
    alpha: float | Tensor,
    *,
    max_iter: int = MAX_ITER,
    tol: float = TOL,
    n_starts: int = 1,
    start_kinds: Sequence[str] = START_KINDS,
    initial_plans: Tensor | None = None,
    plans: str | None = "dense",
    num_threads: int | None = None,
) -> Transport:
    """Compute Fused Gromov–Wasserstein distances (equation 1 of the paper) by fully corrective Frank–Wolfe.

    The problem is not convex: the result is a local minimum with a Frank–Wolfe gap of at most ``tol`` times its value.

    Args:
        graphs: The graphs.
        templates: The templates.
        alpha: Trade-off between features (0) and structure (1): a scalar, or one per template ``(K,)``.
        max_iter: Frank–Wolfe iterations after which a start ends with :attr:`Status.MAX_ITER`.
        tol: Gap, relative to the value, at which a start has converged.
        n_starts: Number of starts; the best result is kept. With several starts, each continues until exchanging two
            entries of the plan does not lower the value. Regular graphs without features need several starts; we
            recommend 4.
        start_kinds: Kinds of starts (docs/solver.md). ``"uniform"``: hh̄ᵀ; later starts of this kind also break ties at
            random. ``"anchored"``: a link of the graph is matched with a link of the template. ``"perturbed"``: near
            the best minima so far. The search begins with a few starts of the first two kinds.
        initial_plans: Couplings ``(N, K, m)``, in the layout of :attr:`Transport.plans`, that replace hh̄ᵀ as the first
            start.
        plans: ``"dense"``, ``"sparse"``, or ``None`` to omit plans and potentials.
        num_threads: Number of solver threads; ``None`` follows :func:`torch.get_num_threads`.

    Raises:
        ValueError: If an input is invalid; the message names the argument and the graph.
    """
    _check_plans(plans)
    problem = problem_of(
        graphs,
        templates,
        alpha,
        max_iter=max_iter,
        tol=tol,
        n_starts=n_starts,
        start_kinds=start_bits(start_kinds, given=initial_plans is not None),
        initial_plans=initial_plans,
        num_threads=thread_count(num_threads),
    )
    return _transport(solve(problem, RESULTS if plans is None else RESULTS | PLANS), plans)


def distances(problem: Problem) -> Tensor:
    """Check the problem of a layer and return only the distances of :func:`fgw`."""
    return solve(checked(problem), wanted=0).distances


def wasserstein(
    graphs: GraphBatch,
    templates: Templates,
    *,
    plans: str | None = "dense",
    num_threads: int | None = None,
) -> Transport:
    """Compute squared 2-Wasserstein distances between node features and template points, as in OT-GNN.

    Equivalent to :func:`fgw` with α = 0, without structure of graphs or templates.
    """
    if graphs.edge_index is not None or graphs.structure is not None or templates.structure is not None:
        raise ValueError("structure: wasserstein compares features only; leave edge_index and structure out")
    return fgw(graphs, templates, 0.0, plans=plans, num_threads=num_threads)


def linear_transport(
    cost: Tensor,
    *,
    template_weights: Tensor | None = None,
    node_weights: Tensor | None = None,
    batch: Tensor | None = None,
    batch_size: int | None = None,
    plans: str | None = "dense",
    num_threads: int | None = None,
) -> Transport:
    """Solve optimal transport for given costs exactly, by network simplex.

    Args:
        cost: Cost between each node of the batch and each node of each template, ``(N, K, m)``; ``(n, m)`` for a
            single problem.
        template_weights: ``(K, m)``, or ``(m,)`` for a single problem; ``None`` for uniform weights.
        node_weights: ``(N,)``; ``None`` for uniform weights within each graph.
        batch: Graph of each row, sorted, ``(N,)``; ``None`` for a single graph.
        batch_size: As in :class:`GraphBatch`.
        plans: As in :func:`fgw`.
        num_threads: As in :func:`fgw`.

    Returns:
        The result, with gradients of ``distances`` with respect to ``cost`` and both weights.
    """
    if not isinstance(cost, Tensor) or not cost.is_floating_point() or cost.dim() not in (2, 3):
        raise ValueError("cost: expected a floating-point tensor of shape (N, K, m) or (n, m)")
    if cost.dim() == 2:
        cost = cost.unsqueeze(1)
    if isinstance(template_weights, Tensor) and template_weights.dim() == 1:
        template_weights = template_weights.unsqueeze(0)
    _check_plans(plans)
    nodes, count, columns = cost.shape
    # The containers check everything else; features play no role here.
    graphs = GraphBatch(cost.flatten(1), batch=batch, batch_size=batch_size, node_weights=node_weights)
    templates = Templates(cost.new_zeros(count, columns, 1), weights=template_weights)
    weights = uniform_weights(templates.features) if template_weights is None else template_weights
    detached = Problem(
        x=cost.new_empty(nodes, 0),
        batch=batch,
        batch_size=graphs.num_graphs,
        node_weights=node_weights,
        edge_index=None,
        edge_weight=None,
        structure=None,
        template_structure=None,
        template_features=cost.new_empty(count, columns, 0),
        template_weights=weights,
        alpha=cost.new_zeros(count),
        cost=cost,
        max_iter=2,
        tol=0.0,
        num_threads=thread_count(num_threads),
    ).map_tensors(Tensor.detach)
    found = _transport(solve(detached, RESULTS | PLANS), "dense")
    index = torch.zeros(len(cost), dtype=torch.int64, device=cost.device) if batch is None else batch
    solution = (found.plans, found.graph_potentials, found.template_potentials)
    distances = linear_distances(found.distances, solution, index, (cost, node_weights, weights))
    return _with_plans(found._replace(distances=distances), plans)


def _check_plans(plans: str | None) -> None:
    if plans not in ("dense", "sparse", None):
        raise ValueError(f"plans: must be 'dense', 'sparse' or None, got {plans!r}")


def _transport(solution: Solution, plans: str | None) -> Transport:
    results = solution.results
    assert results is not None
    found = (tensor.detach() if tensor.requires_grad else tensor for tensor in results)
    named = dict(zip(Results._fields, found, strict=True))
    return _with_plans(Transport(distances=solution.distances, **named), plans)


def _with_plans(found: Transport, plans: str | None) -> Transport:
    """Convert plans to the requested format."""
    if plans is None:
        return found._replace(plans=None, graph_potentials=None, template_potentials=None)
    return found._replace(plans=found.plans.to_sparse()) if plans == "sparse" and found.plans is not None else found

"""Distances between every graph of a batch and every template, solved exactly and differentiable."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.op import Others, plain_distances, solve_fgw, transport_op
from tfgw.ot.problem import GraphBatch, SharedEntries, Templates, check_options, check_pair, check_start, checked_alpha
from tfgw.ot.starts import START_KINDS, start_bits


class Status(IntEnum):
    """How the solve of a pair ended."""

    CONVERGED = 0
    MAX_ITER = 1
    EMPTY = 2


class Transport(NamedTuple):
    """What a solver returns for B graphs with N nodes in all, and K templates of m nodes.

    Attributes:
        distances: ``(B, K)``. Differentiable; everything below is not.
        structure_costs: Gromov–Wasserstein term at the plan (without its factor α), ``(B, K)``.
        feature_costs: Wasserstein term at the plan (without its factor 1−α), ``(B, K)``.
        plans: ``(N, K, m)`` in float64: row i of a graph's plan for template k at ``[first node + i, k]``. With
            ``plans="sparse"`` the same as a sparse COO tensor; ``None`` if not asked for.
        graph_potentials: Dual potentials of the graphs' nodes, ``(N, K)``; ``None`` without plans.
        template_potentials: Dual potentials of the templates' nodes, of mean zero over those with weight,
            ``(B, K, m)``; ``None`` without plans.
        iterations: Frank–Wolfe iterations of the start that was kept, ``(B, K)``.
        gaps: Frank–Wolfe gap at the plan, ``(B, K)``: no coupling has a linearised cost lower by more than this.
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
    max_iter: int = 1000,
    tol: float = 1e-9,
    n_starts: int = 1,
    start_kinds: Sequence[str] = START_KINDS,
    initial_plans: Tensor | None = None,
    plans: str | None = "dense",
    num_threads: int | None = None,
) -> Transport:
    """Fused Gromov–Wasserstein distances (equation 1 of the paper) of all pairs, by fully corrective Frank–Wolfe.

    The problem is not convex: the result is a local minimum with a Frank–Wolfe gap of at most ``tol`` times its value.

    Args:
        graphs: The graphs.
        templates: The templates.
        alpha: Trade-off between features (0) and structure (1): a scalar, or one per template ``(K,)``.
        max_iter: Frank–Wolfe iterations after which a start ends with :attr:`Status.MAX_ITER`.
        tol: Gap, relative to the value, at which a start has converged.
        n_starts: Number of starts, of which the best is kept. If there are several, each ends where exchanging two
            entries of the plan does not help either. Regular graphs without features need several; take 4.
        start_kinds: What the starts may be (docs/solver.md). ``"uniform"``: hh̄ᵀ, the first time as it is,
            then with ties broken at random. ``"anchored"``: a link of the graph is pinned to a link of the template.
            ``"perturbed"``: near the best minima so far. A few starts of the first two kinds come first.
        initial_plans: Couplings ``(N, K, m)``, in the layout of :attr:`Transport.plans`: the first start, in place of
            hh̄ᵀ.
        plans: ``"dense"``, ``"sparse"``, or ``None`` to leave out plans and potentials.
        num_threads: Threads to solve with; ``None`` follows :func:`torch.get_num_threads`.

    Raises:
        ValueError: If an input is invalid; the message names the argument and the graph.
    """
    distances, others = _solve(
        graphs,
        templates,
        alpha,
        max_iter=max_iter,
        tol=tol,
        n_starts=n_starts,
        start_kinds=start_kinds,
        initial_plans=initial_plans,
        plans=plans,
        num_threads=num_threads,
    )
    return _named(distances, others(), plans)


def fgw_distances(
    x: Tensor,
    batch: Tensor | None,
    batch_size: int | None,
    node_weights: Tensor | None,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    structure: Tensor | None,
    shared: SharedEntries,
    template_features: Tensor,
    template_weights: Tensor,
    alpha: Tensor,
    *,
    padded_nodes: bool,
    max_iter: int,
    tol: float,
    n_starts: int,
    start_kinds: Sequence[str],
    num_threads: int | None,
) -> Tensor:
    """The distances of :func:`fgw`, without what a layer would not look at, for templates whose structures are
    ``shared``. With ``padded_nodes``, which takes a GPU, nodes at the end may have ``batch_size`` as their graph, and
    count for nothing."""
    usual = n_starts == 1 and start_kinds == START_KINDS and (num_threads is None or num_threads >= 1)
    if usual and max_iter >= 1 and tol >= 0:
        found = plain_distances(
            x, batch, batch_size, node_weights, edge_index, edge_weight, structure, shared, template_features,
            template_weights, alpha, padded_nodes=padded_nodes, max_iter=max_iter, tol=tol,
        )  # fmt: skip
        if found is not None:
            return found
    if padded_nodes:
        raise ValueError("batch: padded nodes need the solver on a GPU, called eagerly, with a single start")
    distances, _ = _solve(
        GraphBatch(x, batch, batch_size, edge_index, edge_weight, structure, node_weights),
        Templates(template_features, weights=template_weights),
        alpha,
        shared=shared,
        max_iter=max_iter,
        tol=tol,
        n_starts=n_starts,
        start_kinds=start_kinds,
        plans=None,
        num_threads=num_threads,
    )
    return distances


def _solve(
    graphs: GraphBatch,
    templates: Templates,
    alpha: float | Tensor,
    *,
    max_iter: int,
    tol: float,
    n_starts: int,
    start_kinds: Sequence[str],
    plans: str | None,
    num_threads: int | None,
    initial_plans: Tensor | None = None,
    shared: SharedEntries | None = None,
) -> tuple[Tensor, Others]:
    check_pair(graphs, templates, shared)
    if plans not in ("dense", "sparse", None):
        raise ValueError(f"plans: must be 'dense', 'sparse' or None, got {plans!r}")
    check_options(max_iter=max_iter, tol=tol, n_starts=n_starts)
    bits = start_bits(start_kinds, given=initial_plans is not None)
    weights = _template_weights(templates)
    check_start(initial_plans, graphs, templates)
    alpha = checked_alpha(alpha, templates)
    from_graphs = (graphs.x, graphs.node_weights, graphs.edge_weight, graphs.structure)
    structure = templates.structure if shared is None else shared.entries
    from_templates = (structure, templates.features, weights, alpha)
    needs_grad = torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (*from_graphs, *from_templates)
    )
    return solve_fgw(
        graphs.x,
        graphs.batch,
        graphs.num_graphs,
        graphs.node_weights,
        graphs.edge_index,
        graphs.edge_weight,
        graphs.structure,
        templates.structure if shared is None else shared,
        templates.features,
        weights,
        alpha,
        initial_plans,
        max_iter,
        tol,
        n_starts,
        bits,
        _threads(num_threads),
        plans is not None,
        needs_grad=needs_grad,
    )


def wasserstein(
    graphs: GraphBatch,
    templates: Templates,
    *,
    plans: str | None = "dense",
    num_threads: int | None = None,
) -> Transport:
    """Squared 2-Wasserstein distances between node features and template points: OT-GNN's vector.

    The same as :func:`fgw` at α = 0, without structure on either side.
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
    """Exact optimal transport for given costs, by network simplex.

    Args:
        cost: ``(N, K, m)``: cost between each node of the batch and each node of each template; ``(n, m)`` for a
            single problem.
        template_weights: ``(K, m)``, or ``(m,)`` for a single problem; ``None`` is uniform.
        node_weights: ``(N,)``; ``None`` is uniform within each graph.
        batch: Graph of each row, sorted, ``(N,)``; ``None`` is a single graph.
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
    _, count, columns = cost.shape
    # The containers check everything else; features play no role here.
    graphs = GraphBatch(cost.flatten(1), batch=batch, batch_size=batch_size, node_weights=node_weights)
    templates = Templates(cost.new_zeros(count, columns, 1), weights=template_weights)
    weights = _template_weights(templates)
    with torch.no_grad():
        outputs = transport_op(cost, batch, graphs.num_graphs, node_weights, weights, _threads(num_threads))
    plan, u, v = outputs[6:9]
    # Zero in value, and by the envelope theorem right in every derivative.
    change = (plan.to(cost) * (cost - cost.detach())).sum(-1)
    if node_weights is not None:
        change = change + u.to(cost) * (node_weights - node_weights.detach())[:, None]
    index = torch.zeros(len(cost), dtype=torch.int64, device=cost.device) if batch is None else batch
    total = cost.new_zeros(outputs[0].shape).index_add(0, index, change)
    total = total + (v.to(cost) * (weights - weights.detach())).sum(-1)
    return _named(outputs[0] + total, outputs[1:], plans)


def _named(distances: Tensor, others: tuple[Tensor, ...], plans: str | None) -> Transport:
    structure_costs, feature_costs, gaps, iterations, status, plan, u, v = (
        t.detach() if t.requires_grad else t for t in others
    )
    wanted = plans is not None
    return Transport(
        distances=distances,
        structure_costs=structure_costs,
        feature_costs=feature_costs,
        plans=(plan.to_sparse() if plans == "sparse" else plan) if wanted else None,
        graph_potentials=u if wanted else None,
        template_potentials=v if wanted else None,
        iterations=iterations,
        gaps=gaps,
        status=status,
    )


def _template_weights(templates: Templates) -> Tensor:
    if templates.weights is not None:
        return templates.weights
    count, nodes, _ = templates.features.shape
    return templates.features.new_full((count, nodes), 1 / nodes)


def _threads(num_threads: int | None) -> int:
    """What the operators take: 0 lets them ask PyTorch, which cannot be done while a model is traced."""
    if num_threads is None:
        return 0
    if num_threads < 1:
        raise ValueError(f"num_threads: must be at least 1, got {num_threads}")
    return num_threads

"""The operators behind :mod:`tfgw.ot`, registered with PyTorch: kernel, shapes while tracing, gradient.

fgw, wasserstein ──▶ tfgw::fgw ──────────▶ C++ core: solve      or, for tensors on a GPU, its counterpart in op_cuda.py
                         │ autograd
                         ▼
                     tfgw::fgw_backward ─▶ C++ core: backward   (envelope theorem: the plan is held fixed)

linear_transport ──▶ tfgw::transport ────▶ C++ core: solve, with a given cost

On a GPU, while nothing is traced, fgw goes past the operators, straight to op_cuda.fgw.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfgw.ot import _core  # type: ignore[attr-defined]  # the C++ extension
from tfgw.ot.problem import SharedEntries, expand_alpha
from tfgw.ot.starts import UNIFORM

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
Others = Callable[[], tuple[Tensor, ...]]
"""The outputs after the first, for those who want them: on a GPU, each tensor costs the host a microsecond."""


@torch.library.custom_op("tfgw::fgw", mutates_args=(), device_types="cpu")
def fgw_op(
    x: Tensor,
    batch: Tensor | None,
    batch_size: int,
    node_weights: Tensor | None,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    structure: Tensor | None,
    template_structure: Tensor | None,
    template_features: Tensor,
    template_weights: Tensor,
    alpha: Tensor,
    start: Tensor | None,
    max_iter: int,
    tol: float,
    n_starts: int,
    start_kinds: int,
    num_threads: int,
    with_plans: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    problem = _problem(
        x, batch, batch_size, node_weights, edge_index, edge_weight, structure,
        template_structure, template_features, template_weights, alpha,
    )  # fmt: skip
    problem.check(weight_tolerance(x, template_features))
    check_finite("initial_plans", start, batch)
    dtype = torch.promote_types(x.dtype, template_features.dtype)
    count, columns = template_weights.shape
    out = _allocate(x.shape[0], batch_size, count, columns, with_plans)
    _solve(problem, start, out, max_iter, tol, n_starts, start_kinds, num_threads)
    return _finish(out, dtype)


@fgw_op.register_fake
def _(
    x: Tensor, batch: Any, batch_size: int, node_weights: Any, edge_index: Any, edge_weight: Any, structure: Any,
    template_structure: Any, template_features: Tensor, template_weights: Tensor, alpha: Any, start: Any, max_iter: int,
    tol: float, n_starts: int, start_kinds: int, num_threads: int, with_plans: bool,
) -> Outputs:  # fmt: skip
    dtype = torch.promote_types(x.dtype, template_features.dtype)
    count, columns = template_weights.shape
    return _shapes(x, dtype, x.shape[0], batch_size, count, columns, with_plans)


@torch.library.custom_op("tfgw::fgw_backward", mutates_args=(), device_types="cpu")
def fgw_backward_op(
    grad: Tensor,
    x: Tensor,
    batch: Tensor | None,
    batch_size: int,
    node_weights: Tensor | None,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    structure: Tensor | None,
    template_structure: Tensor | None,
    template_features: Tensor,
    template_weights: Tensor,
    alpha: Tensor,
    structure_cost: Tensor,
    feature_cost: Tensor,
    plan: Tensor,
    row_potential: Tensor,
    col_potential: Tensor,
    num_threads: int,
    needs: list[bool],
) -> list[Tensor]:
    problem = _problem(
        x, batch, batch_size, node_weights, edge_index, edge_weight, structure,
        template_structure, template_features, template_weights, alpha,
    )  # fmt: skip
    inputs = (
        x,
        node_weights,
        edge_weight,
        structure,
        template_structure,
        template_features,
        template_weights,
        alpha,
    )
    grads = [
        np.zeros(tuple(t.shape)) if need and t is not None else None for t, need in zip(inputs, needs, strict=True)
    ]
    grad_x, grad_h, grad_edge, grad_dense, *grad_templates = grads
    _core.backward(
        problem,
        structure_cost=_array(structure_cost), feature_cost=_array(feature_cost), plan=_array(plan),
        row_potential=_array(row_potential), col_potential=_array(col_potential), grad_distance=_array(grad),
        threads=num_threads or torch.get_num_threads(), grad_x=grad_x, grad_weights=grad_h,
        grad_structure=grad_edge if grad_edge is not None else grad_dense,
        **dict(zip(("grad_template_structure", "grad_template_x", "grad_template_weights", "grad_alpha"),
                   grad_templates, strict=True)),
    )  # fmt: skip
    return [
        torch.from_numpy(g).to(t) if g is not None and t is not None else x.new_empty(0)
        for t, g in zip(inputs, grads, strict=True)
    ]


@fgw_backward_op.register_fake
def _(
    grad: Any, x: Tensor, batch: Any, batch_size: int, node_weights: Tensor | None, edge_index: Any,
    edge_weight: Tensor | None, structure: Tensor | None, template_structure: Tensor | None, template_features: Tensor,
    template_weights: Tensor, alpha: Tensor, structure_cost: Any, feature_cost: Any, plan: Any, row_potential: Any,
    col_potential: Any, num_threads: int, needs: list[bool],
) -> list[Tensor]:  # fmt: skip
    inputs = (
        x,
        node_weights,
        edge_weight,
        structure,
        template_structure,
        template_features,
        template_weights,
        alpha,
    )
    return [
        torch.empty_like(t, memory_format=torch.contiguous_format) if need and t is not None else x.new_empty(0)
        for t, need in zip(inputs, needs, strict=True)
    ]


# Positions, among the arguments of `fgw_op`, of the inputs for which `fgw_backward_op` returns gradients.
_DIFFERENTIABLE = (0, 3, 5, 6, 7, 8, 9, 10)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Outputs) -> None:
    problem = inputs[:11]
    ctx.set_materialize_grads(False)  # no zeros in the shape of the plans
    ctx.batch_size = inputs[2]
    ctx.num_threads = inputs[16]
    ctx.with_plans = inputs[17]
    ctx.save_for_backward(*(p for i, p in enumerate(problem) if i != 2), *output[1:3], *output[6:9])


def _backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 18
    if not ctx.with_plans:
        raise RuntimeError("tfgw::fgw: gradients need the plans; call it with with_plans=True")
    x, batch, *problem = ctx.saved_tensors[:10]
    needs = [ctx.needs_input_grad[i] for i in _DIFFERENTIABLE]
    grads = fgw_backward_op(grad, x, batch, ctx.batch_size, *problem, *ctx.saved_tensors[10:], ctx.num_threads, needs)
    result: list[Tensor | None] = [None] * 18
    for position, need, g in zip(_DIFFERENTIABLE, needs, grads, strict=True):
        if need:
            result[position] = g
    return tuple(result)


def _no_double_backward(ctx: Any, *grads: Tensor) -> Any:
    raise RuntimeError(
        "tfgw: second derivatives of FGW are not defined here: the plan is held fixed (envelope theorem), "
        "so differentiating its gradient again would silently leave out how the plan moves"
    )


fgw_op.register_autograd(_backward, setup_context=_setup_context)
fgw_backward_op.register_autograd(_no_double_backward)


@torch.library.custom_op("tfgw::transport", mutates_args=(), device_types="cpu")
def transport_op(
    cost: Tensor,
    batch: Tensor | None,
    batch_size: int,
    node_weights: Tensor | None,
    template_weights: Tensor,
    num_threads: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    nodes, count, columns = cost.shape
    problem = _problem(
        cost.new_empty(nodes, 0), batch, batch_size, node_weights, None, None, None,
        None, cost.new_empty(count, columns, 0), template_weights, cost.new_zeros(count), cost,
    )  # fmt: skip
    problem.check(weight_tolerance(cost, template_weights))
    check_finite("cost", cost, batch)
    out = _allocate(nodes, batch_size, count, columns, True)
    _solve(problem, None, out, max_iter=2, tol=0.0, n_starts=1, start_kinds=UNIFORM, num_threads=num_threads)
    return _finish(out, cost.dtype)


@transport_op.register_fake
def _(cost: Tensor, batch: Any, batch_size: int, node_weights: Any, template_weights: Any, num_threads: int) -> Outputs:
    nodes, count, columns = cost.shape
    return _shapes(cost, cost.dtype, nodes, batch_size, count, columns, True)


def _problem(
    x: Tensor,
    batch: Tensor | None,
    batch_size: int,
    node_weights: Tensor | None,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    structure: Tensor | None,
    template_structure: Tensor | None,
    template_features: Tensor,
    template_weights: Tensor,
    alpha: Tensor,
    cost: Tensor | None = None,
) -> Any:
    ptr = np.zeros(batch_size + 1, dtype=np.int64)
    labels = np.zeros(x.shape[0], dtype=np.int64) if batch is None else _indices(batch)
    _core.offsets(labels, ptr)
    sizes = np.diff(ptr)
    if structure is not None and structure.numel() != int((sizes**2).sum()):
        raise ValueError(
            f"structure: has {structure.numel()} entries, but graphs of these sizes need {int((sizes**2).sum())}"
        )
    h = np.repeat(1 / np.maximum(sizes, 1), sizes) if node_weights is None else _array(node_weights)
    return _core.Problem(
        ptr=ptr, x=_array(x), weights=h,
        edge_index=None if edge_index is None else _indices(edge_index),
        edge_weight=_maybe_array(edge_weight), dense=_maybe_array(structure), cost=_maybe_array(cost),
        template_structure=_maybe_array(template_structure), template_x=_array(template_features),
        template_weights=_array(template_weights), alpha=_array(alpha),
    )  # fmt: skip


def _allocate(nodes: int, graphs: int, count: int, columns: int, with_plans: bool) -> dict[str, np.ndarray | None]:
    """Zeroed results. The core writes every entry of a graph that has nodes; others keep their zeros."""
    pairs = (graphs, count)
    return {
        **{name: np.zeros(pairs) for name in ("distance", "structure_cost", "feature_cost", "gap")},
        "iterations": np.zeros(pairs, dtype=np.int32),
        "status": np.zeros(pairs, dtype=np.int32),
        "plan": np.empty((nodes, count, columns)) if with_plans else None,
        "row_potential": np.empty((nodes, count)) if with_plans else None,
        "col_potential": np.zeros((graphs, count, columns)) if with_plans else None,
    }


def _shapes(
    like: Tensor, dtype: torch.dtype, nodes: int, graphs: int, count: int, columns: int, with_plans: bool
) -> Outputs:
    pairs = [like.new_empty((graphs, count), dtype=dtype) for _ in range(4)]
    counts = [like.new_empty((graphs, count), dtype=torch.int32) for _ in range(2)]
    plans = [(nodes, count, columns), (nodes, count), (graphs, count, columns)] if with_plans else [(0,)] * 3
    rest = [like.new_empty(shape, dtype=torch.float64) for shape in plans]
    return (*pairs, *counts, *rest)  # type: ignore[return-value]


def _solve(
    problem: Any,
    start: Tensor | None,
    out: dict[str, np.ndarray | None],
    max_iter: int,
    tol: float,
    n_starts: int,
    start_kinds: int,
    num_threads: int,
) -> None:
    _core.solve(
        problem,
        start=_maybe_array(start),
        max_iter=max_iter,
        tol=tol,
        starts=n_starts,
        start_kinds=start_kinds,
        threads=num_threads or torch.get_num_threads(),
        **out,
    )


def _finish(out: dict[str, np.ndarray | None], dtype: torch.dtype) -> Outputs:
    tensors = [torch.empty(0, dtype=torch.float64) if a is None else torch.from_numpy(a) for a in out.values()]
    return (*(t.to(dtype) for t in tensors[:4]), *tensors[4:])  # type: ignore[return-value]


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to(torch.float64).contiguous().numpy()


def _maybe_array(tensor: Tensor | None) -> np.ndarray | None:
    return None if tensor is None else _array(tensor)


def check_finite(name: str, rows: Tensor | None, batch: Tensor | None) -> None:
    """Raise ``ValueError`` naming the graph of the first of the rows (nodes, …) that cannot be computed with."""
    if rows is None or bool((usable := rows.isfinite() & (rows.abs() <= 1e100)).all()):
        return
    node = int(usable.flatten(1).all(1).logical_not().nonzero()[0])
    graph = 0 if batch is None else int(batch[node])
    raise ValueError(f"{name}: graph {graph} has an entry that is not finite or beyond 1e100 (node {node})")


def _indices(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def weight_tolerance(first: Tensor, second: Tensor) -> float:
    """How far weights of these precisions may be from a sum of 1: a few rounding errors per node."""
    return _dtype_tolerance(first.dtype, second.dtype)


@cache
def _dtype_tolerance(*dtypes: torch.dtype) -> float:
    return min(0.05, max(1e-6, *(100 * torch.finfo(dtype).eps for dtype in dtypes)))


def call_fgw_op(*arguments: Any, needs_grad: bool) -> tuple[Tensor, Others]:
    """:func:`solve_fgw`, wherever the tensors are and whoever traces them."""
    *graphs, structure, features, weights, alpha = arguments[:11]
    structure = structure.dense() if isinstance(structure, SharedEntries) else structure
    templates = (structure, features, weights, expand_alpha(alpha, len(weights)))
    distance, *others = fgw_op(*graphs, *templates, *arguments[11:-1], needs_grad or arguments[-1])
    return distance, lambda: tuple(others)


# Adds the kernels for tensors on a GPU to the operators above.
from tfgw.ot import op_cuda  # noqa: E402

plain_distances = op_cuda.plain_distances


def solve_fgw(*arguments: Any, needs_grad: bool) -> tuple[Tensor, Others]:
    """:func:`fgw_op`, or the same on a GPU without the cost of an operator, where nobody needs one.

    Here ``with_plans`` says whether plans are asked for; that gradients need them is known. The templates' structures
    may be :class:`SharedEntries`, and their α a single one.
    """
    if arguments[0].is_cuda and op_cuda.is_eager(*arguments[:12], getattr(arguments[7], "entries", None)):
        return op_cuda.fgw(*arguments, needs_grad=needs_grad)
    return call_fgw_op(*arguments, needs_grad=needs_grad)

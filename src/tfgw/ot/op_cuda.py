"""What the operators of :mod:`tfgw.ot.op` do with tensors on a GPU: solve there, or say why not and ask the CPU."""

from typing import Any

import torch
from torch import Tensor

from tfgw.ot.cuda import run
from tfgw.ot.cuda.run import Input
from tfgw.ot.op import Outputs, fgw_backward_op, fgw_op, transport_op, weight_tolerance


@fgw_op.register_kernel("cuda")
def _(
    x: Tensor, batch: Any, batch_size: int, node_weights: Any, edge_index: Any, edge_weight: Any, structure: Any,
    template_structure: Any, template_features: Tensor, template_weights: Tensor, alpha: Any, start: Any, max_iter: int,
    tol: float, n_starts: int, num_threads: int, with_plans: bool,
) -> Outputs:  # fmt: skip
    given = Input(
        x, batch, batch_size, node_weights, edge_index, edge_weight, structure, template_structure, template_features,
        template_weights, alpha, start=start,
    )  # fmt: skip
    options = (max_iter, tol, n_starts, num_threads, with_plans)
    reason = run.reason_not_to(given, n_starts)
    if reason is not None:
        run.warn_once(reason)
        return _on_cpu(fgw_op, given[:11], start, *options)
    out = _allocate(given, with_plans)
    tolerance = weight_tolerance(x, template_features)
    if not run.solve_checked(given, tolerance, out, max_iter=max_iter, tol=tol):
        _on_cpu(fgw_op, given[:11], start, *options)  # raises the error that names what is wrong
        raise AssertionError("the GPU's checks found an error that the CPU's did not")
    return _named(out, torch.promote_types(x.dtype, template_features.dtype))


@fgw_backward_op.register_kernel("cuda")
def _(
    grad: Tensor, x: Tensor, batch: Any, batch_size: int, node_weights: Any, edge_index: Any, edge_weight: Any,
    structure: Any, template_structure: Any, template_features: Tensor, template_weights: Tensor, alpha: Tensor,
    structure_cost: Tensor, feature_cost: Tensor, plan: Tensor, row_potential: Tensor, col_potential: Tensor,
    num_threads: int, needs: list[bool],
) -> list[Tensor]:  # fmt: skip
    given = Input(
        x, batch, batch_size, node_weights, edge_index, edge_weight, structure, template_structure, template_features,
        template_weights, alpha,
    )  # fmt: skip
    solved = (structure_cost, feature_cost, plan, row_potential, col_potential)
    if run.reason_not_to(given) is not None:
        moved = _to_cpu(grad, *given[:11], *solved)
        return [g.to(x.device) for g in fgw_backward_op(*moved, num_threads, needs)]
    inputs = (x, node_weights, edge_weight, structure, template_structure, template_features, template_weights, alpha)
    names = ("x", "weights", "edge_weight", "dense", "template_structure", "template_x", "template_weights", "alpha")
    grads = {
        name: torch.empty_like(t, dtype=torch.float64, memory_format=torch.contiguous_format)
        if need and t is not None
        else None
        for name, t, need in zip(names, inputs, needs, strict=True)
    }
    arrays = [t.to(torch.float64).contiguous() for t in (grad, *solved)]
    solved_names = ("grad", "structure_cost", "feature_cost", "plan", "row_potential", "col_potential")
    run.backward_unchecked(
        given, weight_tolerance(x, template_features), dict(zip(solved_names, arrays, strict=True)), grads
    )
    return [
        g.to(t.dtype) if g is not None and t is not None else x.new_empty(0)
        for t, g in zip(inputs, grads.values(), strict=True)
    ]


@transport_op.register_kernel("cuda")
def _(
    cost: Tensor, batch: Any, batch_size: int, node_weights: Any, template_weights: Tensor, num_threads: int
) -> Outputs:
    nodes, count, columns = cost.shape
    given = Input(
        cost.new_empty(nodes, 0), batch, batch_size, node_weights, None, None, None, None,
        cost.new_empty(count, columns, 0), template_weights, cost.new_zeros(count), cost=cost,
    )  # fmt: skip
    reason = run.reason_not_to(given)
    arguments = (cost, batch, batch_size, node_weights, template_weights)
    if reason is not None:
        run.warn_once(reason)
        return _on_cpu(transport_op, arguments, num_threads)
    out = _allocate(given, True)
    if not run.solve_checked(given, weight_tolerance(cost, template_weights), out, max_iter=2, tol=0.0):
        _on_cpu(transport_op, arguments, num_threads)
        raise AssertionError("the GPU's checks found an error that the CPU's did not")
    return _named(out, cost.dtype)


def _allocate(given: Input, with_plans: bool) -> dict[str, Tensor | None]:
    (count, columns), nodes, graphs = given.template_weights.shape, len(given.x), given.batch_size
    doubles = dict.fromkeys(("distance", "structure_cost", "feature_cost", "gap"), (graphs, count))
    plans = {
        "plan": (nodes, count, columns),
        "row_potential": (nodes, count),
        "col_potential": (graphs, count, columns),
    }
    device = given.x.device
    return {
        **{name: torch.empty(shape, dtype=torch.float64, device=device) for name, shape in doubles.items()},
        **{name: torch.empty((graphs, count), dtype=torch.int32, device=device) for name in ("iterations", "status")},
        **{
            name: torch.empty(shape, dtype=torch.float64, device=device) if with_plans else None
            for name, shape in plans.items()
        },
    }


def _named(out: dict[str, Tensor | None], dtype: torch.dtype) -> Outputs:
    device = out["distance"].device  # type: ignore[union-attr]
    tensors = [torch.empty(0, dtype=torch.float64, device=device) if t is None else t for t in out.values()]
    return (*(t.to(dtype) for t in tensors[:4]), *tensors[4:])  # type: ignore[return-value]


def _to_cpu(*arguments: Any) -> tuple[Any, ...]:
    return tuple(a.cpu() if isinstance(a, Tensor) else a for a in arguments)


def _on_cpu(op: Any, tensors: tuple[Any, ...], *rest: Any) -> Outputs:
    device = tensors[0].device
    return tuple(t.to(device) for t in op(*_to_cpu(*tensors, *rest)))

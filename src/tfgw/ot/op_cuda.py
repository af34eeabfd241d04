"""What the operators of :mod:`tfgw.ot.op` do with tensors on a GPU: solve there, or say why not and ask the CPU.

Called eagerly, an operator costs the host more than the solve of a small batch. :func:`fgw` does then the same without
one, and its backward launches the kernels of the gradients alone, on what the forward prepared.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tfgw.ot.cuda import run
from tfgw.ot.cuda.gpu import Gpu, gpu
from tfgw.ot.cuda.run import Input
from tfgw.ot.cuda.solved import Solution, Wanted, behind_prepared, unpacked
from tfgw.ot.op import Others, Outputs, call_fgw_op, fgw_backward_op, fgw_op, transport_op, weight_tolerance
from tfgw.ot.problem import SharedEntries, expand_alpha
from tfgw.ot.starts import UNIFORM


def is_eager(*inputs: object) -> bool:
    """Whether nobody traces, transforms or intercepts what is computed from these."""
    return is_untraced() and {*map(type, inputs)} <= _PLAIN


def is_untraced() -> bool:
    """Whether nobody traces, transforms or intercepts what is computed."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state()
    )


_PLAIN = {Tensor, Parameter, SharedEntries, int, type(None)}


def fgw(*arguments: Any, needs_grad: bool) -> tuple[Tensor, Others]:
    """:func:`tfgw.ot.op.solve_fgw` for tensors on a GPU, called eagerly."""
    start, max_iter, tol, n_starts, start_kinds, _, with_plans = arguments[11:]
    structure, features, weights, alpha = arguments[7:11]
    shared = structure if isinstance(structure, SharedEntries) else None
    if shared is None:
        alpha = expand_alpha(alpha, len(weights))
    else:
        structure = shared.entries
    given = Input._make((*arguments[:7], structure, features, weights, alpha, None, start, shared, False))
    device = _device(given.x)
    if run.reason_not_to(device, given, n_starts, start_kinds) is not None:
        return call_fgw_op(*arguments, needs_grad=needs_grad)
    solution = _solve(device, given, max_iter, tol, Wanted.PLANS if needs_grad or with_plans else Wanted.PAIRS)
    return _differentiable(solution, given, needs_grad), partial(_others, solution, given, with_plans)


def plain_distances(*arguments: Any, padded_nodes: bool, max_iter: int, tol: float) -> Tensor | None:
    """The distances of a layer, called eagerly with tensors on a GPU, if nothing about them needs a closer look.

    ``arguments`` as for :func:`fgw`, with entries that are shared; ``padded_nodes`` as in :class:`Input`. Where this
    returns ``None``, the caller has to look, and to say what is wrong.
    """
    if not (_is_on_gpu(arguments[0]) and is_untraced()):
        return None
    shared = arguments[7]
    given = Input._make((*arguments[:7], shared.entries, *arguments[8:], None, None, shared, padded_nodes))
    device = _device(given.x)
    if not device.host.is_plain(given):
        return None
    needs_grad = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in given.differentiable)
    solution = _solve(device, given, max_iter, tol, Wanted.GRADIENTS if needs_grad else Wanted.DISTANCES)
    return _differentiable(solution, given, needs_grad)


def _is_on_gpu(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_cuda


def _differentiable(solution: Solution, given: Input, needs_grad: bool) -> Tensor:
    if not needs_grad:
        return _distance(solution, given)
    distance: Tensor = _apply(solution, given, *given.differentiable)
    return distance


class _Differentiable(torch.autograd.Function):
    """The distance of a solve, with its gradients."""

    @staticmethod
    def forward(ctx: Any, solution: Solution, given: Input, *_: Tensor | None) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.batch_size, ctx.shared = given.batch_size, given.shared
        ctx.save_for_backward(solution.prepared, solution.pairs, solution.plans, *given[:2], *given[3:11])
        return _distance(solution, given)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        (grad,), needs = grads, ctx.needs_input_grad[2:]
        if grad is None:
            return (None,) * (2 + len(needs))
        prepared, pairs, plans, x, batch, *rest = ctx.saved_tensors
        given = Input._make((x, batch, ctx.batch_size, *rest, None, None, ctx.shared, False))  # all prepared already
        if torch.is_grad_enabled():  # a graph of the gradients is wanted: the operator says that there is none
            if pairs is None:
                pairs, plans = behind_prepared(prepared, grad, x.shape[0], given.template_weights.shape[1])
            results = unpacked(pairs, plans, x.shape[0], given.template_weights.shape[1])
            values = (*results[:2], *results[5:])
            found = given.folded(fgw_backward_op(grad, *given.unshared(), *values, 0, list(needs)), needs)
            return (None, None, *(g if need else None for g, need in zip(found, needs, strict=True)))
        solved = () if pairs is None else (pairs, plans)
        return (None, None, *_gradients(_device(x), given, grad, solved, needs, prepared))


# Past what Function's own would look for in every argument: tensors that a transform of functorch left behind, which
# the host refused already.
_apply = super(torch.autograd.Function, _Differentiable).apply


@fgw_op.register_kernel("cuda")
def _fgw(
    x: Tensor, batch: Any, batch_size: int, node_weights: Any, edge_index: Any, edge_weight: Any, structure: Any,
    template_structure: Any, template_features: Tensor, template_weights: Tensor, alpha: Any, start: Any, max_iter: int,
    tol: float, n_starts: int, start_kinds: int, num_threads: int, with_plans: bool,
) -> Outputs:  # fmt: skip
    given = Input(
        x, batch, batch_size, node_weights, edge_index, edge_weight, structure, template_structure, template_features,
        template_weights, alpha, start=start,
    )  # fmt: skip
    reason = run.reason_not_to(_device(x), given, n_starts, start_kinds)
    if reason is not None:
        run.warn_once(reason)
        return tuple(_on_cpu(fgw_op, *given[:11], start, max_iter, tol, n_starts, start_kinds, num_threads, with_plans))
    solution = _solve(_device(x), given, max_iter, tol, Wanted.PLANS if with_plans else Wanted.PAIRS)
    return _outputs(solution, given, with_plans)


@fgw_backward_op.register_kernel("cuda")
def _fgw_backward(
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
    if run.reason_not_to(_device(x), given) is not None:
        return _on_cpu(fgw_backward_op, grad, *given[:11], *solved, num_threads, needs)
    found = _gradients(_device(x), given, grad, solved, needs)
    return [x.new_empty(0) if g is None else g for g in found]


@transport_op.register_kernel("cuda")
def _transport(
    cost: Tensor, batch: Any, batch_size: int, node_weights: Any, template_weights: Tensor, num_threads: int
) -> Outputs:
    nodes, count, columns = cost.shape
    given = Input(
        cost.new_empty(nodes, 0), batch, batch_size, node_weights, None, None, None, None,
        cost.new_empty(count, columns, 0), template_weights, cost.new_zeros(count), cost=cost,
    )  # fmt: skip
    reason = run.reason_not_to(_device(cost), given)
    if reason is not None:
        run.warn_once(reason)
        return tuple(_on_cpu(transport_op, cost, batch, batch_size, node_weights, template_weights, num_threads))
    return _outputs(_solve(_device(cost), given, max_iter=2, tol=0.0, wanted=Wanted.PLANS), given, with_plans=True)


def _device(tensor: Tensor) -> Gpu:
    return gpu(tensor.device.index)


def _solve(device: Gpu, given: Input, max_iter: int, tol: float, wanted: Wanted) -> Solution:
    is_fgw = given.cost is None
    tolerance = weight_tolerance(given.x, given.template_features if is_fgw else given.template_weights)
    found = run.solve(device, given, weight_tolerance=tolerance, max_iter=max_iter, tol=tol, wanted=wanted)
    if found is None:  # the CPU finds the same, and raises the error that names it
        if is_fgw:
            _on_cpu(fgw_op, *given.unpadded().unshared(), given.start, max_iter, tol, 1, UNIFORM, 0, False)
        else:
            _on_cpu(transport_op, given.cost, *given[1:4], given.template_weights, 0)
        raise AssertionError("the GPU's checks found an error that the CPU's did not")
    return found


def _outputs(solution: Solution, given: Input, with_plans: bool) -> Outputs:
    """The results as the operators return them: none may share its memory with another."""
    others = (t.clone() for t in _others(solution, given, with_plans))
    return (_distance(solution, given), *others)  # type: ignore[return-value]


def _distance(solution: Solution, given: Input) -> Tensor:
    return _as_given(solution.distance, given)


def _others(solution: Solution, given: Input, with_plans: bool) -> tuple[Tensor, ...]:
    assert solution.pairs is not None
    plans = solution.plans if with_plans else None
    results = unpacked(solution.pairs, plans, given.x.shape[0], given.template_weights.shape[1])
    return (*(_as_given(t, given) for t in results[:3]), *results[3:])


def _as_given(result: Tensor, given: Input) -> Tensor:
    """In the precision of the input."""
    if given.x.dtype is torch.float64:
        return result
    return result.to(torch.promote_types(given.x.dtype, given.template_features.dtype))


def _gradients(
    device: Gpu,
    given: Input,
    grad: Tensor,
    solved: tuple[Tensor | None, ...],
    needs: Sequence[bool],
    prepared: Tensor | None = None,
) -> list[Tensor | None]:
    tolerance = weight_tolerance(given.x, given.template_features)
    return run.backward(device, given, grad, solved, needs, weight_tolerance=tolerance, prepared=prepared)


def _on_cpu(op: Any, *arguments: Any) -> Any:
    device = arguments[0].device
    return [t.to(device) for t in op(*(a.cpu() if isinstance(a, Tensor) else a for a in arguments))]

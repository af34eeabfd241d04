"""Derivatives beyond gradients: along a tangent (forward mode); second derivatives raise an error.

By the envelope theorem the plan T is held fixed. Along tangents Ċ, Ḟ, ḣ, … the distance changes by
    2 (1−α) Σ T_il ⟨F_i − F̄_l, Ḟ_i − F̄˙_l⟩  +  2 α Σ T_il T_jm (C_ij − C̄_lm) (Ċ_ij − C̄˙_lm)
    +  ⟨u, ḣ⟩ + ⟨v, h̄˙⟩  +  α̇ (structure cost − feature cost),
with u and v the centred dual potentials: the gradients of cpp/backward.cpp, times the tangents.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from tfgw.ot.problem import DIFFERENTIABLE, Problem, Results
from tfgw.ot.tracing import is_eager, is_transformed

NO_SECOND_DERIVATIVES = (
    "tfgw: second derivatives of FGW are not defined here: the plan is held fixed (envelope theorem), "
    "so differentiating its gradient again would silently leave out how the plan moves"
)


def raise_second_derivatives(*_: Any) -> NoReturn:
    """Raise the error for second derivatives, in reverse or forward mode."""
    raise RuntimeError(NO_SECOND_DERIVATIVES)


class _Refused(torch.autograd.Function):
    """Copy the first ``count`` tensors. Differentiating the copies with respect to any input raises an error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    backward = jvp = staticmethod(raise_second_derivatives)  # type: ignore[assignment]


def refuse_second_derivatives(
    derivatives: Sequence[Tensor | None], inputs: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return copies of ``derivatives`` that raise an error if they are differentiated with respect to ``inputs``."""
    present = [tensor for tensor in derivatives if tensor is not None]
    if not present:
        return list(derivatives)
    refusing = iter(_Refused.apply(len(present), *present, *(tensor for tensor in inputs if tensor is not None)))
    return [None if tensor is None else next(refusing) for tensor in derivatives]


class _LinearDistances(torch.autograd.Function):
    """See :func:`linear_distances`."""

    @staticmethod
    def forward(found: Tensor, *_: Tensor | None) -> Tensor:
        return found.view_as(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        T, u, v, index, *inputs = ctx.saved_tensors
        needs, (_, h, h_bar) = ctx.needs_input_grad[5:], inputs
        found: list[Tensor | None] = [None, None, None]
        of_nodes = grad.index_select(0, index)
        if needs[0]:
            found[0] = T.to(grad.dtype) * of_nodes[..., None]
        if needs[1]:
            found[1] = (u.to(h.dtype) * of_nodes).sum(1)
        if needs[2]:
            found[2] = (v.to(h_bar.dtype) * grad[..., None]).sum(0)
        if torch.is_grad_enabled():  # create_graph=True
            found = refuse_second_derivatives(found, [grad, *inputs])
        return (None,) * 5 + tuple(found)


class _TransformedLinearDistances(_LinearDistances):
    """Support the transforms of :mod:`torch.func` and forward mode, which :func:`torch.compile` cannot trace."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _LinearDistances.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        T, u, v, index, *inputs = ctx.saved_tensors
        cost_dot, h_dot, h_bar_dot = tangents[5:]
        of_nodes, total = torch.zeros_like(u), torch.zeros_like(v[..., 0])
        if cost_dot is not None:
            of_nodes = of_nodes + (T * cost_dot).sum(-1)
        if h_dot is not None:
            of_nodes = of_nodes + u * h_dot[:, None]
        if h_bar_dot is not None:
            total = total + (v * h_bar_dot).sum(-1)
        change = total.index_add(0, index, of_nodes).to(inputs[0].dtype)
        (refusing,) = refuse_second_derivatives([change], [*inputs, *tangents[5:]])
        assert refusing is not None
        return refusing


# Bypasses the handling of transforms in Function.apply, which takes longer than a small solve.
_apply = super(torch.autograd.Function, _LinearDistances).apply


def linear_distances(
    found: Tensor,
    solution: tuple[Tensor | None, ...],
    index: Tensor,
    inputs: tuple[Tensor, Tensor | None, Tensor],
) -> Tensor:
    """Make the distances ``(B, K)`` of linear transport differentiable with respect to costs and both weights.

    ``solution`` contains the plans and potentials; ``index`` is the graph of each node.
    """
    if is_transformed():
        return _TransformedLinearDistances.apply(found, *solution, index, *inputs)
    apply = _apply if is_eager() else _LinearDistances.apply
    return apply(found, *solution, index, *inputs)


def directional_derivative(problem: Problem, results: Results, tangents: dict[str, Tensor]) -> Tensor:
    """Return the derivative of the distances ``(B, K)`` along tangents of the problem's tensors, in float64."""
    at = {name: _double(getattr(problem, name)) for name in DIFFERENTIABLE}
    along = {name: _double(tangent) for name, tangent in tangents.items()}
    T, x = results.plans, problem.x
    index = x.new_zeros(len(x), dtype=torch.int64) if problem.batch is None else problem.batch

    def per_graph(values: Tensor) -> Tensor:
        return values.new_zeros((problem.num_graphs, *values.shape[1:])).index_add(0, index, values)

    total = torch.zeros_like(results.structure_costs, dtype=torch.float64)
    has_structure = problem.template_structure is not None
    alpha = at["alpha"] if has_structure else torch.zeros_like(at["alpha"])
    if "x" in along or "template_features" in along:
        total = total + (1 - alpha) * per_graph(_feature_change(T, at, along))
    if has_structure and along.keys() & {"edge_weight", "structure", "template_structure"}:
        rows, columns, C, C_dot = _entries(problem, at, along, index)
        h_bar = per_graph(T)
        change = per_graph(_structure_change(T, rows, columns, C, C_dot, at, along))
        if "template_structure" in along:
            product = at["template_structure"] * along["template_structure"]
            change = change + torch.einsum("bkl,klm,bkm->bk", h_bar, product, h_bar)
        total = total + 2 * alpha * change
    if "node_weights" in along:
        counts = per_graph(torch.ones_like(index, dtype=torch.float64)).clamp_min(1)[:, None]
        centred = results.graph_potentials - (per_graph(results.graph_potentials) / counts)[index]
        total = total + per_graph(centred * along["node_weights"][:, None])
    if "template_weights" in along:
        total = total + (results.template_potentials * along["template_weights"]).sum(-1)
    if "alpha" in along:
        total = total + along["alpha"] * (results.structure_costs.double() - results.feature_costs.double())
    return total


def _double(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.double()


def _feature_change(T: Tensor, at: dict[str, Any], along: dict[str, Tensor]) -> Tensor:
    """2 Σ_l T_il ⟨F_i − F̄_l, Ḟ_i − F̄˙_l⟩, ``(N, K)``."""
    F, F_bar = at["x"], at["template_features"]
    change = torch.zeros_like(T)
    if "x" in along:
        F_dot = along["x"]
        change = change + (F * F_dot).sum(-1)[:, None, None] - torch.einsum("nd,kmd->nkm", F_dot, F_bar)
    if "template_features" in along:
        F_bar_dot = along["template_features"]
        change = change + (F_bar * F_bar_dot).sum(-1) - torch.einsum("nd,kmd->nkm", F, F_bar_dot)
    return 2 * (T * change).sum(-1)


def _structure_change(
    T: Tensor,
    rows: Tensor,
    columns: Tensor,
    C: Tensor,
    C_dot: Tensor | None,
    at: dict[str, Any],
    along: dict[str, Tensor],
) -> Tensor:
    """Per node i, Σ_jlm T_il T_jm (C_ij Ċ_ij − Ċ_ij C̄_lm − C_ij C̄˙_lm), ``(N, K)``."""
    change = torch.zeros_like(T[..., 0])
    if C_dot is not None:
        h = T.sum(-1)
        TC = torch.einsum("nkl,klm->nkm", T, at["template_structure"])
        each = C[:, None] * h[rows] * h[columns] - (TC[rows] * T[columns]).sum(-1)
        change = change.index_add(0, rows, C_dot[:, None] * each)
    if "template_structure" in along:
        CT = torch.zeros_like(T).index_add(0, rows, C[:, None, None] * T[columns])
        change = change - (CT * torch.einsum("nkl,klm->nkm", T, along["template_structure"])).sum(-1)
    return change


def _entries(
    problem: Problem, at: dict[str, Any], along: dict[str, Tensor], index: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return rows, columns, values and tangents of the entries of C, in the layout of :class:`GraphBatch`."""
    nodes = len(index)
    if problem.edge_index is None:
        rows, columns = (index[:, None] == index).nonzero().unbind(1)
        dense = along.get("structure")
        return rows, columns, at["structure"].reshape(-1), None if dense is None else dense.reshape(-1)
    places, entry = (problem.edge_index[0] * nodes + problem.edge_index[1]).unique(return_inverse=True)

    rows, columns = places // nodes, places % nodes

    def added(values: Tensor) -> Tensor:
        return values.new_zeros(len(places)).index_add(0, entry, values)

    if at["edge_weight"] is None:
        return rows, columns, (rows != columns).double(), None
    change = along.get("edge_weight")
    return rows, columns, added(at["edge_weight"]), None if change is None else added(change)

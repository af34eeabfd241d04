"""The operators as PyTorch sees them."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ot.problems import STRUCTURES, Problem, linear_problems, random_problem
from tfgw.ot import GraphBatch, Templates, fgw, linear_transport
from tfgw.ot.op import fgw_backward_op, fgw_op, transport_op

KINDS = ("none", *STRUCTURES)


def operator_arguments(problem: Problem, *, with_plans: bool = True, requires_grad: bool = True) -> tuple[Any, ...]:
    def leaf(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.clone().requires_grad_(requires_grad)

    graphs, templates = problem.graphs, problem.templates
    return (
        leaf(graphs.x),
        graphs.batch,
        len(problem.sizes),
        leaf(graphs.node_weights),
        graphs.edge_index,
        leaf(graphs.edge_weight),
        leaf(graphs.structure),
        leaf(templates.structure),
        leaf(templates.features),
        leaf(templates.weights),
        leaf(problem.alpha),
        None,  # start
        100,  # max_iter
        1e-9,  # tol
        1,  # n_starts
        1,  # start_kinds: uniform
        1,  # num_threads
        with_plans,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_forward_operator_passes_opcheck(kind: str) -> None:
    torch.library.opcheck(fgw_op, operator_arguments(random_problem(0, kind)))


def test_forward_operator_without_plans_passes_opcheck() -> None:
    arguments = operator_arguments(random_problem(0, "sparse"), with_plans=False, requires_grad=False)
    torch.library.opcheck(fgw_op, arguments)


def test_forward_operator_with_a_start_passes_opcheck() -> None:
    problem = random_problem(0, "dense")
    arguments = list(operator_arguments(problem))
    arguments[11] = fgw_op(*arguments)[6].detach()
    torch.library.opcheck(fgw_op, tuple(arguments))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("all_inputs", [True, False])
def test_backward_operator_passes_opcheck(kind: str, all_inputs: bool) -> None:
    arguments = operator_arguments(random_problem(0, kind), requires_grad=False)
    outputs = fgw_op(*arguments)
    differentiable = [arguments[i] for i in (0, 3, 5, 6, 7, 8, 9, 10)]
    needs = [tensor is not None and (all_inputs or i % 2 == 0) for i, tensor in enumerate(differentiable)]
    solved = (outputs[1], outputs[2], *outputs[6:9])
    torch.library.opcheck(fgw_backward_op, (torch.ones_like(outputs[0]), *arguments[:11], *solved, 1, needs))


@pytest.mark.parametrize("family", ["generic", "zero_weights"])
def test_transport_operator_passes_opcheck(family: str) -> None:
    problems = linear_problems(family, 0)[1]
    batch = torch.arange(len(problems.sizes)).repeat_interleave(torch.tensor(problems.sizes))
    cost, h, h_bar = (torch.from_numpy(a) for a in (problems.cost, problems.h, problems.h_bar))
    torch.library.opcheck(transport_op, (cost, batch, len(problems.sizes), h, h_bar, 1))
    single = torch.from_numpy(problems.cost[:, :1].copy())
    torch.library.opcheck(transport_op, (single, None, 1, None, h_bar[:1], 1))


@pytest.mark.slow
def test_compiled_equals_eager() -> None:
    problem = random_problem(0, "weighted")
    size = len(problem.sizes)

    def loss(x: Tensor, C_bar: Tensor, F_bar: Tensor, h_bar: Tensor, alpha: Tensor) -> Tensor:
        graphs = GraphBatch(**{**vars(problem.graphs), "x": torch.tanh(x), "batch_size": size})
        found = fgw(graphs, Templates(F_bar, C_bar, h_bar), alpha, plans=None)
        return (found.distances * torch.arange(size)[:, None]).sum()

    gradients = []
    for function in (loss, torch.compile(loss, fullgraph=True)):
        templates = problem.templates
        inputs = (problem.graphs.x, templates.structure, templates.features, templates.weights, problem.alpha)
        leaves = [t.clone().requires_grad_() for t in inputs]
        value = function(*leaves)
        value.backward()
        gradients.append([value.detach(), *(leaf.grad for leaf in leaves)])
    for eager, compiled in zip(*gradients, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_are_refused(kind: str) -> None:
    problem = random_problem(0, kind)
    x = problem.graphs.x.clone().requires_grad_()
    graphs = GraphBatch(**{**vars(problem.graphs), "x": x})
    found = fgw(graphs, problem.templates, problem.alpha)
    (first,) = torch.autograd.grad(found.distances.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives of FGW are not defined"):
        first.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_inputs_give_single_precision_outputs(kind: str) -> None:
    problem = random_problem(0, kind)

    def cast(part: GraphBatch | Templates, dtype: torch.dtype) -> dict[str, Any]:
        fields = vars(part).items()
        return {n: t.to(dtype) if isinstance(t, Tensor) and t.is_floating_point() else t for n, t in fields}

    results, gradients = [], []
    for dtype in (torch.float32, torch.float64):
        graphs = GraphBatch(**cast(problem.graphs, dtype))
        templates = Templates(**cast(problem.templates, dtype))
        graphs.x.requires_grad_()
        templates.features.requires_grad_()
        found = fgw(graphs, templates, problem.alpha.to(dtype))
        found.distances.sum().backward()
        results.append(found)
        gradients.append((graphs.x.grad, templates.features.grad))
    for name in ("distances", "structure_costs", "feature_costs", "gaps"):
        assert getattr(results[0], name).dtype == torch.float32
    assert results[0].plans.dtype == torch.float64
    torch.testing.assert_close(results[0].distances.double(), results[1].distances, rtol=1e-5, atol=1e-6)
    for single, double in zip(*gradients, strict=True):
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-5)


def test_precisions_may_be_mixed() -> None:
    problem = random_problem(0, "sparse")
    graphs = GraphBatch(**{**vars(problem.graphs), "x": problem.graphs.x.float()})
    x = graphs.x.requires_grad_()
    distances = fgw(graphs, problem.templates, 0.5).distances
    assert distances.dtype == torch.float64
    distances.sum().backward()
    assert x.grad.dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_need_not_be_contiguous(kind: str) -> None:
    problem = random_problem(0, kind)

    def strided(tensor: Tensor | None) -> Tensor | None:
        """The same values, every other entry of a larger tensor, its axes stored in reverse order."""
        if not isinstance(tensor, Tensor):
            return tensor
        holder = torch.zeros([2 * size for size in reversed(tensor.shape)], dtype=tensor.dtype)
        view = holder[(slice(None, None, 2),) * tensor.dim()].permute(*reversed(range(tensor.dim())))
        return view.copy_(tensor)

    graphs = GraphBatch(**{name: strided(field) for name, field in vars(problem.graphs).items()})
    templates = Templates(**{name: strided(field) for name, field in vars(problem.templates).items()})
    assert not graphs.x.is_contiguous()
    assert not templates.features.is_contiguous()
    gradients = []
    for g, t in ((graphs, templates), (problem.graphs, problem.templates)):
        x, F_bar = g.x.detach().requires_grad_(), t.features.detach().requires_grad_()
        distances = fgw(
            GraphBatch(**{**vars(g), "x": x}),
            Templates(F_bar, t.structure, t.weights),
            strided(problem.alpha),
        ).distances
        distances.sum().backward()
        gradients.append((distances.detach(), x.grad, F_bar.grad))
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("needed", ["x", "node_weights", "edge_weight", "structure", "features", "weights", "alpha"])
def test_gradients_only_where_they_are_needed(needed: str) -> None:
    kind = "weighted" if needed == "edge_weight" else "dense"
    problem = random_problem(0, kind)
    every = {**vars(problem.graphs), **{f"template_{n}": t for n, t in vars(problem.templates).items()}}
    every["alpha"] = problem.alpha
    names = [name for name, t in every.items() if isinstance(t, Tensor) and t.is_floating_point()]
    wanted = [name for name in names if name in (needed, f"template_{needed}")]
    assert wanted

    def backward(leaves: list[str]) -> dict[str, Tensor | None]:
        inputs = {n: t.clone().requires_grad_(n in leaves) if n in names else t for n, t in every.items()}
        graphs = GraphBatch(**{n: inputs[n] for n in vars(problem.graphs)})
        templates = Templates(**{n: inputs[f"template_{n}"] for n in vars(problem.templates)})
        fgw(graphs, templates, inputs["alpha"]).distances.sum().backward()
        return {n: inputs[n].grad for n in names}

    alone, together = backward(wanted), backward(names)
    for name in names:
        if name in wanted:
            assert torch.equal(alone[name], together[name])
        else:
            assert alone[name] is None


def test_nothing_is_differentiable_without_gradients() -> None:
    problem = random_problem(0, "sparse")
    x = problem.graphs.x.clone().requires_grad_()
    graphs = GraphBatch(**{**vars(problem.graphs), "x": x})
    found = fgw(graphs, problem.templates, 0.5)
    assert found.distances.requires_grad
    others = [t for t in found[1:] if isinstance(t, Tensor)]
    assert not any(t.requires_grad for t in others)
    with torch.no_grad():
        assert not fgw(graphs, problem.templates, 0.5).distances.requires_grad


def test_inputs_are_left_alone() -> None:
    problem = random_problem(0, "directed", weights="zeros")
    before = [t.clone() for t in (*vars(problem.graphs).values(), *vars(problem.templates).values()) if t is not None]
    fgw(problem.graphs, problem.templates, problem.alpha)
    after = [t for t in (*vars(problem.graphs).values(), *vars(problem.templates).values()) if t is not None]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_linear_transport_in_single_precision() -> None:
    cost = torch.rand(6, 2, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    single = linear_transport(cost)
    double = linear_transport(cost.detach().double())
    assert single.distances.dtype == torch.float32
    torch.testing.assert_close(single.distances.double(), double.distances, rtol=1e-6, atol=0)
    single.distances.sum().backward()
    torch.testing.assert_close(cost.grad.double(), double.plans, rtol=1e-6, atol=0)

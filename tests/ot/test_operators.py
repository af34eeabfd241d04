"""The operators as PyTorch sees them."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.ot.problems import STRUCTURES, linear_problems, random_problem
from tests.ot.problems import Problem as RandomProblem
from tfgw.ot import GraphBatch, Templates, fgw, linear_transport
from tfgw.ot.dispatch import solve
from tfgw.ot.operators import fgw_backward_op, fgw_op
from tfgw.ot.problem import DIFFERENTIABLE, NUM_OPERATOR_FIELDS, Problem, Results

KINDS = ("none", *STRUCTURES)


def operator_arguments(problem: RandomProblem, *, requires_grad: bool = True) -> Problem:
    def leaf(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.clone().requires_grad_(requires_grad)

    graphs, templates = problem.graphs, problem.templates
    return Problem(
        x=leaf(graphs.x),
        batch=graphs.batch,
        batch_size=len(problem.sizes),
        node_weights=leaf(graphs.node_weights),
        edge_index=graphs.edge_index,
        edge_weight=leaf(graphs.edge_weight),
        structure=leaf(graphs.structure),
        template_structure=leaf(templates.structure),
        template_features=leaf(templates.features),
        template_weights=leaf(templates.weights),
        alpha=leaf(problem.alpha),
        max_iter=100,
        num_threads=1,
    )


def arguments_of(problem: Problem, *, with_plans: bool = True) -> tuple[Any, ...]:
    return (*problem[:NUM_OPERATOR_FIELDS], with_plans)


@pytest.mark.parametrize("kind", KINDS)
def test_forward_operator_passes_opcheck(kind: str) -> None:
    torch.library.opcheck(fgw_op, arguments_of(operator_arguments(random_problem(0, kind))))


def test_forward_operator_without_plans_passes_opcheck() -> None:
    problem = operator_arguments(random_problem(0, "sparse"), requires_grad=False)
    torch.library.opcheck(fgw_op, arguments_of(problem, with_plans=False))


def test_forward_operator_with_a_start_passes_opcheck() -> None:
    problem = operator_arguments(random_problem(0, "dense"))
    plans = fgw_op(*arguments_of(problem))[6].detach()
    torch.library.opcheck(fgw_op, arguments_of(problem._replace(initial_plans=plans)))


@pytest.mark.parametrize("family", ["generic", "zero_weights"])
def test_forward_operator_with_given_costs_passes_opcheck(family: str) -> None:
    problems = linear_problems(family, 0)[1]
    batch = torch.arange(len(problems.sizes)).repeat_interleave(torch.tensor(problems.sizes))
    cost, h, h_bar = (torch.from_numpy(a) for a in (problems.cost, problems.h, problems.h_bar))
    (nodes, count, columns), no_features = cost.shape, torch.empty(0, dtype=cost.dtype)
    problem = Problem(
        x=no_features.view(nodes, 0),
        batch=batch,
        batch_size=len(problems.sizes),
        node_weights=h,
        edge_index=None,
        edge_weight=None,
        structure=None,
        template_structure=None,
        template_features=no_features.view(count, columns, 0),
        template_weights=h_bar,
        alpha=cost.new_zeros(count),
        cost=cost,
        max_iter=2,
        tol=0.0,
    )
    torch.library.opcheck(fgw_op, arguments_of(problem))
    expected = linear_transport(cost, batch=batch, node_weights=h, template_weights=h_bar).distances
    assert torch.equal(fgw_op(*arguments_of(problem))[0], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("all_inputs", [True, False])
def test_backward_operator_passes_opcheck(kind: str, all_inputs: bool) -> None:
    problem = operator_arguments(random_problem(0, kind), requires_grad=False)
    distances, *results = fgw_op(*arguments_of(problem))
    needs = [tensor is not None and (all_inputs or i % 2 == 0) for i, tensor in enumerate(problem.differentiable)]
    saved = Results._make(results).for_backward
    torch.library.opcheck(fgw_backward_op, (torch.ones_like(distances), *problem[:NUM_OPERATOR_FIELDS], *saved, needs))


@pytest.mark.parametrize("kind", KINDS)
def test_operator_and_eager_call_have_the_same_gradients(kind: str) -> None:
    gradients = []
    for eager in (True, False):
        problem = operator_arguments(random_problem(0, kind))
        distances = solve(problem, 0).distances if eager else fgw_op(*arguments_of(problem))[0]
        distances.square().sum().backward()
        gradients.append([distances.detach(), *(leaf.grad for leaf in problem.differentiable if leaf is not None)])
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


def test_the_schema_follows_the_problem() -> None:
    arguments = torch.ops.tfgw.fgw.default._schema.arguments
    assert [argument.name for argument in arguments] == [*Problem._fields[:NUM_OPERATOR_FIELDS], "with_plans"]


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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_upstream_gradients_need_not_be_contiguous(dtype: torch.dtype) -> None:
    problem = random_problem(0, "sparse")
    x, features = problem.graphs.x.to(dtype), problem.templates.features.to(dtype)
    leaf = x.requires_grad_()
    graphs = GraphBatch(**{**vars(problem.graphs), "x": leaf})
    templates = Templates(features, problem.templates.structure, problem.templates.weights)
    distances = fgw(graphs, templates, 0.5).distances
    upstream = torch.arange(1.0, 1 + distances.numel(), dtype=distances.dtype).view(distances.shape)
    transposed, expanded = upstream.T.contiguous().T, upstream[:1, :1].expand(distances.shape)
    assert not transposed.is_contiguous()
    for strided in (transposed, expanded):
        (found,) = torch.autograd.grad(distances, leaf, strided, retain_graph=True)
        (expected,) = torch.autograd.grad(distances, leaf, strided.contiguous(), retain_graph=True)
        assert torch.equal(found, expected)


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


def test_nothing_is_prepared_for_gradients_that_nobody_asks_for() -> None:
    still = operator_arguments(random_problem(0, "weighted"), requires_grad=False)
    assert not still.needs_grad()
    assert solve(still, 0).state is None
    for name in DIFFERENTIABLE:
        if getattr(still, name) is not None:
            one = still._replace(**{name: getattr(still, name).clone().requires_grad_()})
            assert one.needs_grad()
            assert solve(one, 0).state is not None
            with torch.no_grad():
                assert not one.needs_grad()


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


def test_gradients_of_the_operator_need_its_plans() -> None:
    problem = operator_arguments(random_problem(0, "sparse"))
    distances, *_ = fgw_op(*arguments_of(problem, with_plans=False))
    with pytest.raises(RuntimeError, match="gradients need the plans; call it with with_plans=True"):
        distances.sum().backward()


class NoGradient(torch.autograd.Function):
    """Its input has no gradient, whatever its output has."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        return None


@pytest.mark.parametrize("eager", [True, False])
def test_without_a_gradient_of_the_distances_there_is_none_of_the_inputs(eager: bool) -> None:
    problem = operator_arguments(random_problem(0, "weighted"))
    distances = solve(problem, 0).distances if eager else fgw_op(*arguments_of(problem))[0]
    NoGradient.apply(distances).sum().backward()
    assert [tensor.grad for tensor in problem.differentiable if tensor is not None] == [None] * 7


class Watching(TorchDispatchMode):
    """Sees every operation, and changes none: calls under it go through the operator."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("plans", ["dense", None])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_the_operator_has_the_plans_that_are_asked_for(plans: str | None, requires_grad: bool) -> None:
    problem = random_problem(0, "weighted")

    def solved() -> tuple[Tensor, Tensor | None, Tensor | None]:
        x = problem.graphs.x.clone().requires_grad_(requires_grad)
        graphs = GraphBatch(**{**vars(problem.graphs), "x": x})
        found = fgw(graphs, problem.templates, problem.alpha, plans=plans)
        if requires_grad:
            found.distances.sum().backward()
        return found.distances.detach(), found.plans, x.grad

    expected = solved()
    with Watching():
        found = solved()
    assert (expected[1] is None, expected[2] is None) == (plans is None, not requires_grad)
    for one, other in zip(found, expected, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


TENSORS = [
    ("weighted", "x"),
    ("weighted", "batch"),
    ("weighted", "node_weights"),
    ("weighted", "edge_index"),
    ("weighted", "edge_weight"),
    ("dense", "structure"),
    ("weighted", "template_structure"),
    ("weighted", "template_features"),
    ("weighted", "template_weights"),
    ("weighted", "alpha"),
]


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(("kind", "name"), TENSORS)
def test_a_gradient_of_inputs_that_have_changed_is_refused(kind: str, name: str, eager: bool) -> None:
    """It would be that of another problem."""
    problem = operator_arguments(random_problem(0, kind, weights="random"))
    distances = solve(problem, 0).distances if eager else fgw_op(*arguments_of(problem))[0]
    getattr(problem, name).detach()[..., 0] += 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        distances.sum().backward()


@pytest.mark.parametrize("name", ["cost", "node_weights", "template_weights"])
def test_a_gradient_of_changed_costs_or_weights_is_refused(name: str) -> None:
    weights = {"node_weights": torch.full((6,), 1 / 6), "template_weights": torch.full((2, 5), 0.2)}
    inputs = {"cost": torch.rand(6, 2, 5, generator=torch.Generator().manual_seed(0)), **weights}
    leaves = {key: value.requires_grad_() for key, value in inputs.items()}
    distances = linear_transport(**leaves).distances
    leaves[name].detach()[..., 0] += 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        distances.sum().backward()

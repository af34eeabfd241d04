"""Forward mode and the transforms of ``torch.func``: each derivative is that of the backward pass, or an error."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from tests.ot.problems import STRUCTURES, Problem, random_problem
from tests.ot.test_gradients import direction, get, names_for, replaced
from tfgw.nn import TFGWPooling, TWPooling
from tfgw.ot import GraphBatch, Templates, fgw, linear_transport, wasserstein

Function = Callable[[Tensor], Tensor]
CASES = [(kind, name) for kind in ("none", *STRUCTURES) for name in names_for(kind)]
SECOND = "second derivatives of FGW are not defined"


def jacobian_by_backward(function: Function, value: Tensor) -> Tensor:
    leaf = value.clone().requires_grad_()
    out = function(leaf)
    rows = [torch.autograd.grad(entry, leaf, retain_graph=True)[0] for entry in out.flatten()]
    return torch.stack(rows).view(*out.shape, *value.shape)


def along(jacobian: Tensor, tangent: Tensor) -> Tensor:
    return (jacobian * tangent).flatten(-tangent.dim()).sum(-1) if tangent.dim() else jacobian * tangent


def tangent_by_dual_numbers(function: Function, value: Tensor, tangent: Tensor) -> Tensor:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(value, tangent))).tangent


def tangent_by_jvp(function: Function, value: Tensor, tangent: Tensor) -> Tensor:
    return jvp(function, (value,), (tangent,))[1]


def assert_forward_equals_backward(function: Function, value: Tensor, tangent: Tensor) -> None:
    expected = along(jacobian_by_backward(function, value), tangent)
    assert float(expected.abs().max()) > 1e-3
    for find in (tangent_by_dual_numbers, tangent_by_jvp):
        found = find(function, value, tangent)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def distances_by(problem: Problem, name: str) -> Function:
    def distances(value: Tensor) -> Tensor:
        given = replaced(problem, name, value)
        return fgw(given.graphs, given.templates, given.alpha).distances

    return distances


@pytest.mark.parametrize("weights", ["random", "zeros"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_forward_mode_agrees_with_backward(kind: str, name: str, weights: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights=weights)
    tangent = direction(problem, name, seed + 1)
    assert_forward_equals_backward(distances_by(problem, name), get(problem, name), tangent)


def test_forward_mode_along_all_inputs_at_once() -> None:
    problem = random_problem(0, "weighted")
    names = names_for("weighted")
    tangents = [direction(problem, name, i) for i, name in enumerate(names)]

    def distances(*values: Tensor) -> Tensor:
        given = problem
        for name, value in zip(names, values, strict=True):
            given = replaced(given, name, value)
        return fgw(given.graphs, given.templates, given.alpha).distances

    _, found = jvp(distances, tuple(get(problem, name) for name in names), tuple(tangents))
    each = [
        along(jacobian_by_backward(distances_by(problem, name), get(problem, name)), tangent)
        for name, tangent in zip(names, tangents, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(each).sum(0), rtol=1e-9, atol=1e-11)


def test_forward_mode_with_repeated_edges_and_empty_graphs() -> None:
    problem = random_problem(1, "directed")
    graphs = problem.graphs
    edges = torch.cat([graphs.edge_index, graphs.edge_index[:, ::2]], 1)
    weights = torch.cat([graphs.edge_weight, graphs.edge_weight[::2] / 3])
    batch_size = len(problem.sizes) + 2

    def distances(weight: Tensor) -> Tensor:
        fields = {"edge_index": edges, "edge_weight": weight, "batch_size": batch_size}
        templates = Templates(
            *(t * (1 + weight[0] / 7) for t in (problem.templates.features, problem.templates.structure))
        )
        return fgw(GraphBatch(**{**vars(graphs), **fields}), templates, problem.alpha).distances

    assert_forward_equals_backward(distances, weights, torch.linspace(-1, 1, len(weights), dtype=weights.dtype))


def test_forward_mode_of_a_single_graph_with_one_alpha() -> None:
    problem = random_problem(2, "dense", sizes=(6,))
    graphs = GraphBatch(problem.graphs.x, structure=problem.graphs.structure.view(6, 6))

    def distances(value: Tensor) -> Tensor:
        return fgw(graphs, problem.templates, value).distances

    def by_structure(value: Tensor) -> Tensor:
        return fgw(GraphBatch(graphs.x, structure=value), problem.templates, 0.4).distances

    assert_forward_equals_backward(distances, torch.tensor(0.3).double(), torch.tensor(2.0).double())
    assert_forward_equals_backward(by_structure, graphs.structure, torch.eye(6).double() + 0.5)


def test_forward_mode_in_single_precision() -> None:
    problem = random_problem(0, "sparse")
    x, tangent = problem.graphs.x.float(), direction(problem, "x", 1).float()
    templates = Templates(problem.templates.features.float(), problem.templates.structure.float())

    def distances(value: Tensor) -> Tensor:
        return fgw(GraphBatch(**{**vars(problem.graphs), "x": value}), templates, 0.5).distances

    found = tangent_by_dual_numbers(distances, x, tangent)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, along(jacobian_by_backward(distances, x), tangent), rtol=1e-4, atol=1e-4)


def test_forward_mode_of_wasserstein() -> None:
    problem = random_problem(3, "none")

    def distances(value: Tensor) -> Tensor:
        return wasserstein(GraphBatch(value, problem.graphs.batch), problem.templates).distances

    assert_forward_equals_backward(distances, problem.graphs.x, direction(problem, "x", 0))


def test_forward_mode_of_the_layers() -> None:
    problem = random_problem(4, "sparse")
    graphs = problem.graphs
    torch.manual_seed(0)
    tfgw, tw = TFGWPooling(3, 4, 5).double(), TWPooling(3, 4, 5).double()
    for layer, edges in ((tfgw, [graphs.edge_index]), (tw, [])):
        inputs = (*edges, graphs.batch)
        assert_forward_equals_backward(lambda x, f=layer, a=inputs: f(x, *a), graphs.x, direction(problem, "x", 0))
        for name, parameter in layer.named_parameters():
            tangent = torch.randn_like(parameter)
            if name == "template_weights":
                tangent -= tangent.mean(-1, keepdim=True)

            def distances(value: Tensor, layer=layer, name=name, inputs=inputs) -> Tensor:
                return functional_call(layer, {name: value}, (graphs.x, *inputs))

            assert_forward_equals_backward(distances, parameter.detach(), tangent)


def linear_inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def weights(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64).add(0.1)

    h, h_bar = weights(9), weights(3, 5)
    h = torch.cat([part / part.sum() for part in h.split([4, 5])])
    return {"cost": weights(9, 3, 5), "node_weights": h, "template_weights": h_bar / h_bar.sum(-1, keepdim=True)}


def linear_by(name: str) -> Function:
    inputs, batch = linear_inputs(), torch.tensor([0] * 4 + [1] * 5)
    return lambda value: linear_transport(**{**inputs, name: value}, batch=batch, batch_size=2).distances


@pytest.mark.parametrize("name", ["cost", "node_weights", "template_weights"])
def test_forward_mode_of_linear_transport(name: str) -> None:
    value = linear_inputs()[name]
    tangent = torch.randn(value.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert_forward_equals_backward(linear_by(name), value, tangent)


FUNCTIONS = {
    "fgw": lambda: (distances_by(random_problem(5, "weighted"), "x"), random_problem(5, "weighted").graphs.x),
    "linear_transport": lambda: (linear_by("cost"), linear_inputs()["cost"]),
}


@pytest.mark.parametrize("which", FUNCTIONS)
def test_transforms_agree_with_backward(which: str) -> None:
    function, value = FUNCTIONS[which]()
    expected = jacobian_by_backward(function, value)
    out = function(value)
    torch.testing.assert_close(jacrev(function)(value), expected)
    torch.testing.assert_close(jacfwd(function)(value), expected, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(grad(lambda v: function(v)[1, 2])(value), expected[1, 2])
    torch.testing.assert_close(vjp(function, value)[1](out)[0], torch.tensordot(out, expected, 2))


@pytest.mark.parametrize("which", FUNCTIONS)
def test_vmap_is_a_loop(which: str) -> None:
    function, value = FUNCTIONS[which]()
    values = torch.stack([value, value * 1.1, value + 0.1])
    torch.testing.assert_close(vmap(function)(values), torch.stack([function(v) for v in values]))
    torch.testing.assert_close(vmap(function, in_dims=1)(values.movedim(0, 1)), vmap(function)(values))
    gradients = vmap(grad(lambda v: function(v).sum()))(values)
    torch.testing.assert_close(gradients, torch.stack([jacobian_by_backward(function, v).sum((0, 1)) for v in values]))
    _, tangents = jvp(vmap(function), (values,), (values,))
    each = [along(jacobian_by_backward(function, v), v) for v in values]
    torch.testing.assert_close(tangents, torch.stack(each), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_second_derivatives_are_refused_by_all_transforms(which: str) -> None:
    function, value = FUNCTIONS[which]()

    def loss(v: Tensor) -> Tensor:
        return function(v).square().sum()

    twice: list[Function] = [
        hessian(loss),
        jacrev(jacrev(loss)),
        jacrev(jacfwd(loss)),
        jacfwd(jacfwd(loss)),
        lambda v: torch.autograd.functional.hessian(loss, v),
        lambda v: torch.autograd.functional.jvp(loss, v, v)[1],
    ]
    for second in twice:
        with pytest.raises(RuntimeError, match=SECOND):
            second(value)
    leaf = value.clone().requires_grad_()
    for first in (grad(loss)(leaf), jvp(loss, (leaf,), (value,))[1]):
        with pytest.raises(RuntimeError, match=SECOND):
            first.sum().backward()


@pytest.mark.parametrize("which", FUNCTIONS)
def test_derivatives_by_a_tangent_are_refused(which: str) -> None:
    function, value = FUNCTIONS[which]()
    with pytest.raises(RuntimeError, match=SECOND):
        grad(lambda tangent: jvp(function, (value,), (tangent,))[1].sum())(value)


@pytest.mark.parametrize("which", FUNCTIONS)
@pytest.mark.parametrize("allow_unused", [True, False])
def test_second_derivatives_are_not_left_out_as_unused(which: str, allow_unused: bool) -> None:
    function, value = FUNCTIONS[which]()
    leaf = value.clone().requires_grad_()
    (first,) = torch.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match=SECOND):
        torch.autograd.grad(first.sum(), leaf, allow_unused=allow_unused)


def test_gradients_of_a_primal_in_forward_mode() -> None:
    function, value = FUNCTIONS["fgw"]()
    leaf = value.clone().requires_grad_()
    primal, _ = jvp(function, (leaf,), (value,))
    primal.sum().backward()
    torch.testing.assert_close(leaf.grad, jacobian_by_backward(function, value).sum((0, 1)))


@pytest.mark.slow
def test_linear_transport_compiles_as_one_graph() -> None:
    function, value = FUNCTIONS["linear_transport"]()
    compiled = torch.compile(lambda v: function(v).square().sum(), fullgraph=True, backend="aot_eager")
    leaf = value.clone().requires_grad_()
    (found,) = torch.autograd.grad(compiled(leaf), leaf)
    torch.testing.assert_close(found, grad(lambda v: function(v).square().sum())(value))


def test_forward_mode_of_given_costs(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(9, 3, 4, dtype=torch.float64, generator=generator)
    batch = torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2])

    def distances(value: Tensor) -> Tensor:
        return linear_transport(value, batch=batch).distances

    assert_forward_equals_backward(distances, cost, torch.rand(cost.shape, dtype=torch.float64, generator=generator))


def test_forward_mode_of_node_weights_off_the_simplex(seed: int) -> None:
    """Where weights do not sum to 1, both modes agree on what a derivative is."""
    problem = random_problem(seed, "dense", weights="random")
    weights = get(problem, "node_weights")
    assert_forward_equals_backward(distances_by(problem, "node_weights"), weights, torch.rand_like(weights) + 0.5)

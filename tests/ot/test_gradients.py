"""Gradient values against central differences in float64.

The envelope theorem holds where the plan is stable, so each difference starts from the converged plan, and
pairs whose plan gains or loses an entry within the step (the distance has a kink there) are left out. Few may be.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ot.problems import STRUCTURES, Problem, linear_problems, random_problem
from tfgw.ot import GraphBatch, Templates, Transport, fgw, linear_transport

STEP = 1e-5
DUST = 1e-12  # entries of a plan below this are rounding
INPUTS = {  # name: field of Problem, field of that
    "x": ("graphs", "x"),
    "node_weights": ("graphs", "node_weights"),
    "edge_weight": ("graphs", "edge_weight"),
    "structure": ("graphs", "structure"),
    "template_structure": ("templates", "structure"),
    "template_features": ("templates", "features"),
    "template_weights": ("templates", "weights"),
    "alpha": ("alpha", None),
}


def get(problem: Problem, name: str) -> Tensor:
    owner, field = INPUTS[name]
    return problem.alpha if field is None else getattr(getattr(problem, owner), field)


def replaced(problem: Problem, name: str, value: Tensor) -> Problem:
    """The same problem with one input replaced."""
    owner, field = INPUTS[name]
    if field is None:
        return Problem(problem.graphs, problem.templates, value)
    part = getattr(problem, owner)
    return Problem(**{**vars(problem), owner: type(part)(**{**vars(part), field: value})})


def direction(problem: Problem, name: str, seed: int) -> Tensor:
    """A random change of an input; weights stay on the simplex, and zeros stay zero."""
    value = get(problem, name)
    change = torch.from_numpy(np.random.default_rng(seed).normal(size=tuple(value.shape)))
    if name == "template_weights":
        live = value > 0
        mean = (change * live).sum(-1, keepdim=True) / live.sum(-1, keepdim=True)
        return (change - mean) * live
    if name == "node_weights":
        sums = torch.zeros(len(problem.sizes), dtype=torch.float64).index_add(0, problem.graphs.batch, change)
        return change - (sums / torch.tensor(problem.sizes))[problem.graphs.batch]
    return change


def solve(problem: Problem, start: Tensor | None = None) -> Transport:
    return fgw(problem.graphs, problem.templates, problem.alpha, tol=0, initial_plans=start)


def stable_pairs(problem: Problem, *plans: Tensor) -> Tensor:
    """(B, K): whether all plans of a pair have the same entries."""
    same = torch.stack([((plan > DUST) == (plans[0] > DUST)).all(-1) for plan in plans]).all(0)  # (N, K)
    return torch.stack([same[problem.nodes_of(b)].all(0) for b in range(len(problem.sizes))])


def names_for(kind: str) -> list[str]:
    own = {
        "weighted": "edge_weight",
        "directed": "edge_weight",
        "dense": "structure",
        "dense_directed": "structure",
    }
    structure = [] if kind == "none" else ["template_structure", "alpha"]
    names = ["x", "node_weights", "template_features", "template_weights", *structure]
    return [*names, own[kind]] if kind in own else names


CASES = [(kind, name) for kind in ("none", *STRUCTURES) for name in names_for(kind)]


@pytest.mark.parametrize("weights", ["random", "zeros"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_gradient_agrees_with_differences(kind: str, name: str, weights: str, seed: int) -> None:
    problem = random_problem(seed, kind, weights=weights, sizes=(7, 4, 11, 6))
    base = solve(problem).plans
    change = direction(problem, name, seed + 1)
    value = get(problem, name)
    ahead, behind = (solve(replaced(problem, name, value + s * change), base) for s in (STEP, -STEP))
    stable = stable_pairs(problem, base, ahead.plans, behind.plans)
    assert float(stable.double().mean()) > 0.8

    up = torch.from_numpy(np.random.default_rng(seed + 2).normal(size=tuple(stable.shape))) * stable
    leaf = value.clone().requires_grad_()
    found = solve(replaced(problem, name, leaf), base)
    (found.distances * up).sum().backward()
    expected = ((ahead.distances - behind.distances) * up).sum() / (2 * STEP)
    assert float((leaf.grad * change).sum()) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("kind", ["sparse", "dense_directed"])
def test_every_entry_of_the_template_structure(kind: str) -> None:
    """Entry by entry, so that nothing hides in a sum: C̄ and C̄ᵀ have different gradients."""
    problem = random_problem(3, kind, sizes=(6,), templates=1)
    base = solve(problem).plans
    leaf = problem.templates.structure.clone().requires_grad_()
    solve(replaced(problem, "template_structure", leaf), base).distances.sum().backward()
    differences = torch.zeros_like(leaf)
    for place in np.ndindex(*leaf.shape):
        change = torch.zeros_like(leaf)
        change[place] = STEP
        ahead, behind = (
            solve(replaced(problem, "template_structure", leaf.detach() + s * change), base).distances for s in (1, -1)
        )
        differences[place] = (ahead - behind).sum() / (2 * STEP)
    torch.testing.assert_close(leaf.grad, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_weightless_template_nodes_get_a_gradient_that_can_bring_them_back(kind: str) -> None:
    problem = random_problem(4, kind, weights="zeros", sizes=(8, 5, 6))
    weights = problem.templates.weights
    base = solve(problem)
    change = torch.where(weights == 0, 1.0, 0.0) - torch.where(weights == weights.amax(-1, keepdim=True), 1.0, 0.0)
    step = 1e-7
    ahead = solve(replaced(problem, "template_weights", weights + step * change), base.plans)
    live = (weights > 0)[None].expand_as(base.plans)
    stable = stable_pairs(problem, base.plans, ahead.plans * live)
    assert float(stable.double().mean()) > 0.8
    leaf = weights.clone().requires_grad_()
    (solve(replaced(problem, "template_weights", leaf), base.plans).distances * stable).sum().backward()
    expected = float(((ahead.distances - base.distances) * stable).sum()) / step
    assert float((leaf.grad * change).sum()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["weighted", "directed", "dense", "dense_directed"])
def test_gradient_of_alpha_at_its_bounds(kind: str, alpha: float) -> None:
    problem = random_problem(5, kind, alpha=alpha)
    base = solve(problem)
    leaf = problem.alpha.clone().requires_grad_()
    solve(replaced(problem, "alpha", leaf), base.plans).distances.sum().backward()
    torch.testing.assert_close(leaf.grad, (base.structure_costs - base.feature_costs).sum(0), rtol=1e-12, atol=0)
    step = 1e-7 if alpha == 0 else -1e-7
    ahead = solve(replaced(problem, "alpha", problem.alpha + step), base.plans)
    stable = stable_pairs(problem, base.plans, ahead.plans)
    assert float(stable.double().mean()) > 0.8
    expected = (ahead.distances - base.distances) * stable / step
    torch.testing.assert_close(expected, (base.structure_costs - base.feature_costs) * stable, rtol=1e-5, atol=1e-5)


def test_weight_gradients_are_centred_potentials() -> None:
    problem = random_problem(6, "sparse", weights="zeros")
    h, h_bar = (get(problem, name).clone().requires_grad_() for name in ("node_weights", "template_weights"))
    found = solve(replaced(replaced(problem, "node_weights", h), "template_weights", h_bar))
    found.distances.sum().backward()
    for b in range(len(problem.sizes)):
        potentials = found.graph_potentials[problem.nodes_of(b)]
        expected = (potentials - potentials.mean(0)).sum(1)
        torch.testing.assert_close(h.grad[problem.nodes_of(b)], expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(h_bar.grad, found.template_potentials.sum(0), rtol=0, atol=1e-12)
    live_mean = (h_bar.grad * (h_bar > 0)).sum(-1)
    torch.testing.assert_close(live_mean, torch.zeros_like(live_mean), rtol=0, atol=1e-12)


def test_one_scalar_alpha_collects_the_gradients_of_all_templates() -> None:
    problem = random_problem(7, "weighted", alpha=0.3)
    each = problem.alpha.clone().requires_grad_()
    shared = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    for leaf in (each, shared):
        fgw(problem.graphs, problem.templates, leaf).distances.sum().backward()
    assert float(shared.grad) == pytest.approx(float(each.grad.sum()), rel=1e-12)


def test_entries_listed_twice_have_the_gradient_of_their_sum() -> None:
    problem = random_problem(8, "directed")
    edges, weight = problem.graphs.edge_index, problem.graphs.edge_weight
    once = weight.clone().requires_grad_()
    solve(replaced(problem, "edge_weight", once)).distances.sum().backward()
    halves = torch.cat([weight / 2, weight / 2]).requires_grad_()
    twice = GraphBatch(**{**vars(problem.graphs), "edge_index": torch.cat([edges, edges], 1), "edge_weight": halves})
    fgw(twice, problem.templates, problem.alpha, tol=0).distances.sum().backward()
    torch.testing.assert_close(halves.grad, once.grad.repeat(2), rtol=1e-9, atol=1e-12)


def test_empty_graphs_carry_no_gradient() -> None:
    problem = random_problem(9, "sparse")
    grads = []
    for extra in (0, 2):
        leaf = problem.templates.features.clone().requires_grad_()
        graphs = GraphBatch(**{**vars(problem.graphs), "batch_size": len(problem.sizes) + extra})
        templates = Templates(leaf, problem.templates.structure, problem.templates.weights)
        fgw(graphs, templates, problem.alpha).distances.sum().backward()
        grads.append(leaf.grad)
    assert torch.equal(*grads)


@pytest.mark.parametrize("name", ["cost", "node_weights", "template_weights"])
def test_gradient_of_linear_transport(name: str, seed: int) -> None:
    problems = linear_problems("generic", seed)[2]
    inputs = {
        "cost": torch.from_numpy(problems.cost),
        "node_weights": torch.from_numpy(problems.h),
        "template_weights": torch.from_numpy(problems.h_bar),
    }
    batch = torch.arange(len(problems.sizes)).repeat_interleave(torch.tensor(problems.sizes))
    rng = np.random.default_rng(seed)
    change = torch.from_numpy(rng.normal(size=tuple(inputs[name].shape)))
    if name == "template_weights":
        change -= change.mean(-1, keepdim=True)
    if name == "node_weights":
        change = torch.cat([part - part.mean() for part in change.split(problems.sizes)])

    def distances(value: Tensor) -> Tensor:
        given = {**inputs, name: value}
        return linear_transport(given.pop("cost"), batch=batch, **given).distances

    step = 1e-8  # the value is piecewise linear: no truncation error, and few kinks within so small a step
    up = torch.from_numpy(rng.normal(size=(len(problems.sizes), 5)))
    leaf = inputs[name].clone().requires_grad_()
    (distances(leaf) * up).sum().backward()
    difference = distances(inputs[name] + step * change) - distances(inputs[name] - step * change)
    expected = float((difference * up).sum()) / (2 * step)
    assert float((leaf.grad * change).sum()) == pytest.approx(expected, rel=1e-6)

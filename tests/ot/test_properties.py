"""Facts that hold for any graphs, templates, weights and α, with ties and without."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ot import reference
from tests.ot.problems import STRUCTURES, Problem, random_problem
from tfgw.ot import GraphBatch, Templates, canonical_order, diagnose, fgw


@st.composite
def problems(draw: st.DrawFn, ties: bool = True) -> Problem:
    """Random problems; with ``ties``, half of them have few different values, so that there are ties everywhere."""
    problem = random_problem(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.sampled_from([*STRUCTURES, "none"])),
        sizes=tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))),
        features=draw(st.integers(1, 3)),
        templates=draw(st.integers(1, 3)),
        template_nodes=draw(st.integers(2, 7)),
        weights=draw(st.sampled_from(["uniform", "random", "zeros"])),
        alpha=draw(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))),
    )
    if problem.graphs.edge_index is None and problem.graphs.structure is None:
        problem = replace(problem, alpha=torch.zeros_like(problem.alpha))
    return with_ties(problem) if ties and draw(st.booleans()) else problem


def with_ties(problem: Problem) -> Problem:
    graphs, templates = problem.graphs, problem.templates
    graphs = replace(
        graphs,
        x=graphs.x.sign(),
        edge_weight=None if graphs.edge_weight is None else graphs.edge_weight.round(),
        structure=None if graphs.structure is None else graphs.structure.round(),
    )
    structure = None if templates.structure is None else templates.structure.round()
    return replace(
        problem, graphs=graphs, templates=replace(templates, features=templates.features.sign(), structure=structure)
    )


some = settings(max_examples=60)
starts = st.sampled_from([1, 3, 12])


@some
@given(problems(), starts)
def test_a_coupling_and_its_value(problem: Problem, n_starts: int) -> None:
    found = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=n_starts)
    for b, k in problem.pairs():
        pair, plan = problem.pair(b, k), found.plans[problem.nodes_of(b), k].numpy()
        assert plan.min() >= 0
        np.testing.assert_allclose(plan.sum(1), pair.h, atol=1e-12)
        np.testing.assert_allclose(plan.sum(0), pair.h_bar, atol=1e-12)
        assert float(found.distances[b, k]) == pytest.approx(reference.value(pair, plan), rel=1e-9, abs=1e-12)


@some
@given(problems(), starts)
def test_bounds_enclose_the_value(problem: Problem, n_starts: int) -> None:
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=n_starts)
    assert bool((found.lower_bounds <= found.distances).all())
    assert bool((found.spreads >= 0).all())
    if n_starts > 1:
        assert bool(found.local_minima.all())


@some
@given(problems(ties=False), st.sampled_from([0.125, 4.0]))
def test_scaling(problem: Problem, factor: float) -> None:
    """Powers of 2 scale without rounding: the same plan, and the value times the square. (How ties are broken weighs
    features against structure, and so depends on the scale.)"""
    graphs, templates = problem.graphs, problem.templates
    weight = graphs.edge_weight
    if graphs.edge_index is not None and weight is None:
        weight = torch.ones(graphs.edge_index.shape[1], dtype=torch.float64)
    scaled = fgw(
        replace(
            graphs,
            x=factor * graphs.x,
            edge_weight=None if weight is None else factor * weight,
            structure=None if graphs.structure is None else factor * graphs.structure,
        ),
        replace(
            templates,
            features=factor * templates.features,
            structure=None if templates.structure is None else factor * templates.structure,
        ),
        problem.alpha,
    )
    plain = fgw(graphs, templates, problem.alpha)
    torch.testing.assert_close(scaled.distances, factor**2 * plain.distances, rtol=1e-6, atol=1e-9)


@some
@given(problems(), starts, st.integers(0, 2**32 - 1))
def test_canonical_order_makes_numbering_irrelevant(problem: Problem, n_starts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pair = problem.pair(0, 0)
    template = Templates(
        torch.from_numpy(pair.F_bar)[None], torch.from_numpy(pair.C_bar)[None], torch.from_numpy(pair.h_bar)[None]
    )
    C, F, h = (torch.from_numpy(array) for array in (pair.C, pair.F, pair.h))
    values = []
    for numbers in (torch.arange(len(h)), torch.from_numpy(rng.permutation(len(h)))):
        graph = GraphBatch(F[numbers], structure=C[numbers][:, numbers].flatten(), node_weights=h[numbers])
        order = numbers[canonical_order(graph).order]
        graph = GraphBatch(F[order], structure=C[order][:, order].flatten(), node_weights=h[order])
        other = torch.from_numpy(rng.permutation(len(pair.h_bar)))
        template = Templates(
            template.features[:, other], template.structure[:, other][:, :, other], template.weights[:, other]
        )
        values.append(fgw(graph, template, pair.alpha, n_starts=n_starts).distances)
    assert torch.equal(*values)


@some
@given(problems(), st.integers(2, 4))
def test_more_starts_are_never_worse(problem: Problem, n_starts: int) -> None:
    fewer, more = (fgw(problem.graphs, problem.templates, problem.alpha, n_starts=s) for s in (n_starts, n_starts + 2))
    assert bool((more.distances <= fewer.distances * (1 + 1e-12) + 1e-14).all())


@some
@given(problems())
def test_a_previous_plan_is_never_left_for_a_worse_one(problem: Problem) -> None:
    first = fgw(problem.graphs, problem.templates, problem.alpha)
    again = fgw(problem.graphs, problem.templates, problem.alpha, initial_plans=first.plans)
    assert bool((again.distances <= first.distances * (1 + 1e-9) + 1e-13).all())

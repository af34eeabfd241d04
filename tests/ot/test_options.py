"""Options of the public functions reach the problem that is solved, and are what the docs say where none are given."""

from typing import Any

import pytest
import torch

from tests.ot.problems import Problem as RandomProblem
from tests.ot.problems import random_problem
from tfgw.ot import START_KINDS, GraphBatch, Templates, diagnose, fgw, linear_transport, wasserstein
from tfgw.ot.backends import cpu
from tfgw.ot.dispatch import solve
from tfgw.ot.problem import DIAGNOSIS, PLANS, RESULTS, Problem, Solution
from tfgw.ot.starts import start_bits

OPTIONS: dict[str, Any] = {"max_iter": 17, "tol": 0.125, "n_starts": 5, "num_threads": 3}
DEFAULTS: dict[str, Any] = {"max_iter": 1000, "tol": 1e-9, "n_starts": 1, "num_threads": 0}


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Problem, int]]:
    """The problems that are solved from now on, with the flags of what is wanted."""
    seen: list[tuple[Problem, int]] = []

    def note(problem: Problem, wanted: int) -> Solution:
        seen.append((problem, wanted))
        return solve(problem, wanted)

    forward = cpu.forward

    def note_diagnosis(problem: Problem, wanted: int) -> Solution:
        if wanted & DIAGNOSIS:
            seen.append((problem, wanted))
        return forward(problem, wanted)

    monkeypatch.setattr("tfgw.ot.solve.solve", note)
    monkeypatch.setattr(cpu, "forward", note_diagnosis)
    return seen


def fields(problem: Problem, *names: str) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in names}


def given() -> RandomProblem:
    return random_problem(0, "weighted", sizes=(4, 6), templates=3, template_nodes=5)


@pytest.mark.parametrize("function", [fgw, diagnose])
def test_options_reach_the_problem(function: Any, solved: list[tuple[Problem, int]]) -> None:
    problem = given()
    start = fgw(problem.graphs, problem.templates, problem.alpha).plans
    function(
        problem.graphs, problem.templates, 0.25, start_kinds=["perturbed", "anchored"], initial_plans=start, **OPTIONS
    )
    found, _ = solved[-1]
    assert fields(found, *OPTIONS) == OPTIONS
    assert found.start_kinds == 0b110  # a bit for each of START_KINDS
    assert torch.equal(found.initial_plans, start)
    assert found.alpha.tolist() == [0.25] * 3
    assert (found.batch_size, found.pattern, found.padded_nodes) == (2, None, False)


@pytest.mark.parametrize(("function", "changes"), [(fgw, {}), (diagnose, {"n_starts": 8})])
def test_options_that_are_not_given(function: Any, changes: dict[str, Any], solved: list[tuple[Problem, int]]) -> None:
    problem = given()
    function(problem.graphs, problem.templates, problem.alpha)
    found, _ = solved[-1]
    assert fields(found, *DEFAULTS) == DEFAULTS | changes
    assert found.start_kinds == 2 ** len(START_KINDS) - 1
    assert found.initial_plans is None


def test_a_problem_without_options_has_one_uniform_start_on_all_threads() -> None:
    found = Problem._field_defaults
    assert {name: found[name] for name in ("n_starts", "start_kinds", "num_threads", "padded_nodes")} == {
        "n_starts": 1,
        "start_kinds": start_bits(["uniform"]),
        "num_threads": 0,
        "padded_nodes": False,
    }


def test_only_what_is_wanted_is_computed(solved: list[tuple[Problem, int]]) -> None:
    problem = given()
    for plans in ("dense", "sparse", None):
        fgw(problem.graphs, problem.templates, problem.alpha, plans=plans)
    diagnose(problem.graphs, problem.templates, problem.alpha)
    assert [wanted for _, wanted in solved] == [RESULTS | PLANS, RESULTS | PLANS, RESULTS, RESULTS | DIAGNOSIS]


def test_wasserstein_is_fgw_without_structure(solved: list[tuple[Problem, int]]) -> None:
    problem = given()
    graphs, templates = GraphBatch(problem.graphs.x, problem.graphs.batch), Templates(problem.templates.features)
    found = wasserstein(graphs, templates, plans="sparse", num_threads=2)
    assert fields(solved[-1][0], *DEFAULTS) == DEFAULTS | {"num_threads": 2}
    assert solved[-1][0].alpha.tolist() == [0, 0, 0]
    assert found.plans is not None
    assert found.plans.is_sparse
    assert wasserstein(graphs, templates, plans=None).plans is None


def test_linear_transport_solves_one_linear_problem(solved: list[tuple[Problem, int]]) -> None:
    """A vertex is optimal after one iteration; the second confirms it, to the last digit."""
    cost = torch.rand(7, 2, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = linear_transport(cost, num_threads=3)
    problem, wanted = solved[-1]
    assert fields(problem, *DEFAULTS) == {"max_iter": 2, "tol": 0.0, "n_starts": 1, "num_threads": 3}
    assert wanted == RESULTS | PLANS
    assert problem.alpha.tolist() == [0, 0]
    assert found.gaps.abs().max() < 1e-14

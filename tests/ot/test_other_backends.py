"""Backends that cannot solve a problem, or find it invalid without a reason: the CPU takes over, or tells the error."""

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.ot.problems import random_problem
from tests.ot.test_operators import Watching, arguments_of, operator_arguments
from tfgw.ot import backends, cpu_fallback
from tfgw.ot.dispatch import solve
from tfgw.ot.operators import fgw_op
from tfgw.ot.problem import PLANS, RESULTS


def use_backend(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    """Solve all problems by a backend of these functions from now on."""
    monkeypatch.setattr(backends, "backend_of", lambda tensor: SimpleNamespace(**functions))
    monkeypatch.setattr(cpu_fallback, "_warned", set())


@pytest.mark.parametrize("eager", [True, False])
def test_an_invalid_problem_gets_the_error_of_the_cpu(eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend(monkeypatch, unsupported_reason=lambda problem: None, forward=lambda problem, wanted: None)
    problem = operator_arguments(random_problem(0, "weighted", sizes=(4, 6, 3)))
    with torch.no_grad():
        problem.x[5, 1] = torch.nan
    with pytest.raises(ValueError, match=r"^x: graph 1 has a feature"):
        solve(problem, 0) if eager else fgw_op(*arguments_of(problem))


@pytest.mark.parametrize("eager", [True, False])
def test_backends_that_disagree_are_a_bug(eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_backend(monkeypatch, unsupported_reason=lambda problem: None, forward=lambda problem, wanted: None)
    problem = operator_arguments(random_problem(0, "weighted"))
    with pytest.raises(AssertionError, match="found an error that the CPU's did not"):
        solve(problem, 0) if eager else fgw_op(*arguments_of(problem))


@pytest.mark.parametrize("kind", ["weighted", "dense"])
def test_the_cpu_solves_what_a_backend_cannot(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same results and gradients, and a warning for each reason."""
    expected = operator_arguments(random_problem(0, kind))
    solution = solve(expected, RESULTS | PLANS)
    solution.distances.square().sum().backward()
    for reason in ("too many nodes", "too many templates"):
        use_backend(monkeypatch, unsupported_reason=lambda problem, reason=reason: reason)
        given = operator_arguments(random_problem(0, kind))
        with pytest.warns(UserWarning, match=f"^tfgw: solving on the CPU: {reason}$") as told:
            found = solve(given, RESULTS | PLANS)
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solve(given, 0)
        for one, other in zip(found.results, solution.results, strict=True):
            assert torch.equal(one, other)
        found.distances.square().sum().backward()
        for one, other in zip(given.differentiable, expected.differentiable, strict=True):
            assert (one is None and other is None) or torch.equal(one.grad, other.grad)


def test_padding_needs_a_gpu() -> None:
    problem = operator_arguments(random_problem(0, "weighted"))._replace(padded_nodes=True)
    for context in (Watching(), torch.no_grad()):
        with context, pytest.raises(ValueError, match=r"^batch: padded nodes need the solver on a GPU, called eagerly"):
            solve(problem, 0)

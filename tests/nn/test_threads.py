from collections.abc import Iterator

import pytest
import torch

from tfgw import ot
from tfgw.nn import TFGWPooling, TWPooling
from tfgw.nn.threads import networks_on_one_thread
from tfgw.ot.problem import Problem

X, EDGES = torch.ones(2, 2), torch.tensor([[0, 1], [1, 0]])


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_of(layer: TFGWPooling | TWPooling, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many threads its problem is to be solved with; 0 follows PyTorch."""
    problems: list[Problem] = []
    solve = ot.solve.distances
    for module in ("tfgw_pooling", "tw_pooling"):
        monkeypatch.setattr(f"tfgw.nn.{module}.distances", lambda problem: problems.append(problem) or solve(problem))
    layer(X) if isinstance(layer, TWPooling) else layer(X, EDGES)
    return problems[-1].num_threads


@pytest.mark.parametrize("kind", [TFGWPooling, TWPooling])
def test_the_solver_keeps_the_threads_that_the_networks_give_up(
    kind: type[TFGWPooling] | type[TWPooling], monkeypatch: pytest.MonkeyPatch
) -> None:
    undecided, decided = kind(2, 3, 4), kind(2, 3, 4, num_threads=7)
    with networks_on_one_thread():
        assert torch.get_num_threads() == 1
        assert [threads_of(layer, monkeypatch) for layer in (undecided, decided)] == [2, 7]
        with networks_on_one_thread():
            assert threads_of(undecided, monkeypatch) == 2
        assert threads_of(undecided, monkeypatch) == 2
    assert torch.get_num_threads() == 2
    assert [threads_of(layer, monkeypatch) for layer in (undecided, decided)] == [0, 7]


def test_a_diagnosis_keeps_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int | None] = []
    diagnose = ot.diagnose
    monkeypatch.setattr(ot, "diagnose", lambda *a, **k: given.append(k["num_threads"]) or diagnose(*a, **k))
    layer = TFGWPooling(2, 3, 4)
    layer.diagnose(X, EDGES)
    with networks_on_one_thread():
        layer.diagnose(X, EDGES)
    assert given == [None, 2]

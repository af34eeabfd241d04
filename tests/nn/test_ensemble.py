from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from tests.train.small import cycles_and_stars, small_model
from tfgw.nn import Ensemble, GINModel
from tfgw.nn.ensemble import members_of
from tfgw.train.batches import GraphStore


def batch_inputs(count: int) -> dict[str, Tensor]:
    return GraphStore(cycles_and_stars(count), dtype=torch.float64).batch(torch.arange(count)).inputs


def three_networks() -> list[nn.Module]:
    torch.manual_seed(1)
    return [GINModel(3, 2, num_layers=layers, width=4).double() for layers in (1, 2, 3)]


def test_an_ensemble_predicts_the_mean_of_its_members() -> None:
    members, inputs = three_networks(), batch_inputs(5)
    ensemble = Ensemble(members).eval()
    expected = sum(member(**inputs) for member in members) / 3
    torch.testing.assert_close(ensemble(**inputs), expected)
    assert members_of(ensemble) == members
    assert members_of(members[1]) == [members[1]]


def test_members_learn_from_their_own_loss_alone() -> None:
    members, inputs = three_networks(), batch_inputs(5)
    outputs = Ensemble(members).train()(**inputs)
    assert outputs.shape == (3, 5, 2)
    outputs[1].square().sum().backward()
    assert [any(bool(p.grad is not None and p.grad.any()) for p in member.parameters()) for member in members] == [
        False,
        True,
        False,
    ]


def test_embeddings_are_side_by_side() -> None:
    data, inputs = cycles_and_stars(7), batch_inputs(7)
    members = [small_model(data, layers=layers).double().eval() for layers in (0, 1)]
    with torch.no_grad():
        found = Ensemble(members).eval().embed(**inputs)
        expected = torch.cat([member.embed(**inputs) for member in members], dim=1)
    assert torch.equal(found, expected)
    assert found.shape == (7, 4)


def test_auxiliary_losses_are_averaged() -> None:
    class Penalised(nn.Module):
        def __init__(self, penalty: float) -> None:
            super().__init__()
            self.penalty = penalty

        def forward(self, x: Tensor) -> Tensor:
            self.auxiliary_loss = self.penalty * x.sum()
            return x

    ensemble = Ensemble([Penalised(1.0), Penalised(4.0)])
    ensemble(torch.ones(2, 3))
    assert float(ensemble.auxiliary_loss) == pytest.approx(2.5 * 6)


def test_an_ensemble_needs_members() -> None:
    with pytest.raises(ValueError, match="members: an ensemble needs at least one network"):
        Ensemble([])


def test_no_member_waits_for_another_in_a_cuda_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a stream of its own, which waits for the batch only."""
    log: list[str] = []

    class Stream:
        device_index = 0

        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, other: "Stream") -> None:
            log.append(f"{self.name} waits for {other.name}")

    class Member(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            log.append("member")
            return x

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream("current"))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr("tfgw.nn.ensemble._streams", lambda device, count: [Stream(f"s{i}") for i in range(count)])
    on_gpu = SimpleNamespace(is_node=SimpleNamespace(is_cuda=True))
    monkeypatch.setattr("tfgw.nn.ensemble.current_padding", lambda: on_gpu)
    Ensemble([Member() for _ in range(3)])(torch.zeros(2, 1))
    assert log == [
        *("s0 waits for current", "member", "s1 waits for current", "member", "s2 waits for current", "member"),
        *("current waits for s0", "current waits for s1", "current waits for s2"),
    ]

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.nn.test_padding import rows_of
from tfgw.nn import GINEncoder, batch_norm
from tfgw.nn.batch_norm import BatchNorm
from tfgw.nn.padding import use_padding

EDGES = torch.tensor([[i, (i + step) % 9] for i in range(9) for step in (1, -1)]).T
"""A cycle of nine nodes."""


def apply(norm: BatchNorm, x: Tensor) -> Tensor:
    return norm(x)


def apply_padded(norm: BatchNorm, x: Tensor) -> Tensor:
    with use_padding(rows_of(len(x), 2)):
        return norm(torch.cat([x, 7 * torch.ones_like(x[:2])]))[: len(x)]


def apply_compiled(norm: BatchNorm, x: Tensor) -> Tensor:
    return torch.compile(norm, backend="aot_eager", fullgraph=True)(x)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("applied", [apply, apply_padded, apply_compiled])
@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-9])
def test_a_constant_channel_is_set_to_its_bias(
    applied: Callable[[BatchNorm, Tensor], Tensor], noise: float, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differences that vanish beside ε are rounding errors. The other channels are normalised as usual."""
    if processes > 1:  # as if the other processes had no nodes
        monkeypatch.setattr(batch_norm, "_is_shared", lambda: True)
        monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: None)
    torch.manual_seed(0)
    norm, x = BatchNorm(3).double(), torch.randn(50, 3).double()
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    x[:, 1] = 3 + noise * x[:, 1] / x[:, 1].std()
    plain = torch.nn.BatchNorm1d(3).double()
    plain.load_state_dict(norm.state_dict())
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    found, expected, up = applied(norm, ours), plain(theirs), torch.randn(50, 3).double()
    found.backward(up)
    expected.backward(up)
    is_constant = noise < 1e-9
    others = [0, 2] if is_constant else [0, 1, 2]
    torch.testing.assert_close(found[:, others], expected[:, others])
    torch.testing.assert_close(ours.grad[:, others], theirs.grad[:, others])
    torch.testing.assert_close(norm.running_mean, plain.running_mean)
    torch.testing.assert_close(norm.running_var[others], plain.running_var[others])
    if is_constant:
        assert torch.equal(found[:, 1], norm.bias[1].expand(50))
        assert not ours.grad[:, 1].any()
        assert norm.weight.grad[1] == 0
        assert norm.bias.grad[1] == pytest.approx(up[:, 1].sum().item())
        assert norm.running_var[1] == 1


def test_means_over_all_batches_count_a_constant_channel_as_of_variance_1() -> None:
    norm = BatchNorm(2).double()
    norm.momentum = None
    norm.reset_running_stats()
    norm(torch.tensor([[1.0, 4.0], [3.0, 4.0]]).double())
    norm(torch.tensor([[1.0, 4.0], [5.0, 10.0]]).double())
    assert norm.running_mean.tolist() == [2.5, 5.5]
    assert norm.running_var.tolist() == [5.0, 9.5]  # (2 + 8) / 2 and (1 + 18) / 2


def test_norms_without_learned_scales_and_batches_of_a_single_node() -> None:
    x = torch.tensor([[1.0, 4.0], [3.0, 4.0]])
    torch.testing.assert_close(BatchNorm(2, affine=False)(x), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        BatchNorm(2)(x[:1])


@pytest.mark.parametrize("activation", [False, True])
def test_nodes_that_are_alike_have_the_same_encoding(activation: bool) -> None:
    """Rounding errors do not grow from layer to layer, and evaluation agrees with training."""
    torch.manual_seed(1)
    encoder = GINEncoder(1, width=33, num_layers=5, activation=activation).double()
    x = torch.full((9, 1), 0.1).double()
    for _ in range(200):
        trained = encoder(x, EDGES)
    assert torch.equal(trained, trained[:1].expand(9, -1))
    torch.testing.assert_close(encoder.eval()(x, EDGES), trained, rtol=0, atol=1e-6)
    star = torch.tensor([[0] * 8 + [*range(1, 9)], [*range(1, 9)] + [0] * 8])
    assert encoder(x, star).abs().max() < 100  # a graph whose nodes differ

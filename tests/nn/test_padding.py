from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.nn.compiling import traces_named_tuples
from tfgw.nn import TFGWPooling
from tfgw.nn.batch_norm import BatchNorm
from tfgw.nn.padding import Rows, current_padding, use_padding


def rows_of(nodes: int, padding: int) -> Rows:
    return Rows.where(torch.tensor([[1.0]] * nodes + [[0.0]] * padding).double())


def test_a_norm_is_that_of_the_nodes_alone() -> None:
    torch.manual_seed(0)
    plain, ours = BatchNorm(5).double(), BatchNorm(5).double()
    torch.nn.init.normal_(plain.weight)
    torch.nn.init.normal_(plain.bias)
    ours.load_state_dict(plain.state_dict())
    x, up = torch.randn(11, 5).double(), torch.randn(11, 5).double()
    short = x.clone().requires_grad_()
    long = torch.cat([x, 100 * torch.randn(4, 5).double()]).requires_grad_()
    expected = plain(short)
    expected.backward(up)
    with use_padding(rows_of(11, 4)):
        found = ours(long)
    found.backward(torch.cat([up, torch.zeros(4, 5)]))
    assert short.grad is not None
    assert long.grad is not None
    torch.testing.assert_close(found[:11], expected)
    torch.testing.assert_close(long.grad[:11], short.grad)
    assert not long.grad[11:].any()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, msg=name)


def test_padding_does_not_grow_where_nodes_are_alike() -> None:
    """Their variance is 0, and what differs from them would be divided by its root."""
    norm, x = BatchNorm(2), torch.cat([torch.ones(5, 2), torch.full((3, 2), 1e30)])
    with use_padding(Rows.where((torch.arange(8).unsqueeze(1) < 5).float())):
        found = norm(norm(x))
    assert torch.equal(found, torch.zeros(8, 2))


def test_gradients_of_a_padded_norm() -> None:
    """Nobody asks for what becomes of padding."""
    torch.manual_seed(1)
    norm, rows = BatchNorm(3).double(), rows_of(6, 2)

    def normalised(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        with use_padding(rows):
            return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))[:6]

    inputs = (torch.randn(8, 3), torch.randn(3), torch.randn(3))
    assert torch.autograd.gradcheck(normalised, [t.double().requires_grad_() for t in inputs])


def test_a_norm_that_is_evaluated_uses_what_it_tracked() -> None:
    norm, x = BatchNorm(3).eval(), torch.randn(5, 3)
    expected = norm(x)
    with use_padding(rows_of(3, 2)):
        assert torch.equal(norm(x), expected)


def test_padding_ends_with_its_block() -> None:
    outer, inner = rows_of(3, 2), rows_of(4, 1)
    with pytest.raises(RuntimeError), use_padding(outer):  # noqa: PT012
        with use_padding(inner):
            assert current_padding() is inner
        assert current_padding() is outer
        raise RuntimeError
    assert current_padding() is None


def test_padding_is_that_of_its_thread() -> None:
    with use_padding(rows_of(3, 2)), ThreadPoolExecutor(1) as other:
        assert other.submit(current_padding).result() is None


@traces_named_tuples
def test_padding_is_known_where_a_module_is_compiled() -> None:
    norm, x = BatchNorm(3), torch.randn(5, 3)
    compiled = torch.compile(norm, backend="eager", fullgraph=True)
    expected = norm(x[:3])
    with use_padding(Rows.where(torch.tensor([[1.0]] * 3 + [[0.0]] * 2))):
        torch.testing.assert_close(compiled(x)[:3], expected)
    torch.testing.assert_close(compiled(x[:3]), expected)


def test_a_cpu_does_not_know_padded_nodes() -> None:
    layer = TFGWPooling(3, 2, 4)
    edges, batch = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 0, 1])
    with use_padding(rows_of(2, 1)), pytest.raises(ValueError, match=r"^batch: padded nodes need the solver"):
        layer(torch.randn(3, 3), edges, batch, batch_size=1)

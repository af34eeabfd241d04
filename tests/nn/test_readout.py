import pytest
import torch
from torch_geometric.nn import global_add_pool

from tfgw.nn.padding import Rows, use_padding
from tfgw.nn.readout import from_square_roots, square_roots, sum_over_graphs

BATCH = torch.tensor([0, 0, 2, 2, 2, 3, 3])  # graph 1 has no nodes


def test_without_padding_it_is_that_of_pytorch_geometric() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 3)
    assert torch.equal(sum_over_graphs(x, BATCH, 5), global_add_pool(x, BATCH, size=5))
    assert torch.equal(sum_over_graphs(x, BATCH), global_add_pool(x, BATCH))
    assert torch.equal(sum_over_graphs(x), global_add_pool(x, None))


def test_padding_counts_for_nothing() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 3)
    padded = torch.cat([x, torch.full((2, 3), 100.0)]).requires_grad_()
    with use_padding(Rows.where(torch.tensor([[1.0]] * 7 + [[0.0]] * 2))):
        found = sum_over_graphs(padded, torch.cat([BATCH, torch.tensor([5, 5])]), 5)
    assert torch.equal(found, global_add_pool(x, BATCH, size=5))
    found.square().sum().backward()
    assert padded.grad is not None
    assert padded.grad[:7].any()
    assert not padded.grad[7:].any()


def test_a_padded_batch_needs_its_size() -> None:
    with (
        use_padding(Rows.where(torch.ones(7, 1))),
        pytest.raises(ValueError, match=r"^batch_size: required for a padded batch"),
    ):
        sum_over_graphs(torch.zeros(7, 3), BATCH)


def test_square_roots_are_undone() -> None:
    distances = torch.tensor([0.0, 1e-9, 0.25, 7.0], dtype=torch.float64)
    torch.testing.assert_close(from_square_roots(square_roots(distances)), distances, rtol=1e-12, atol=1e-15)

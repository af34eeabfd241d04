"""In evaluation mode a row's result depends on nothing but the row."""

import pytest
import torch
from torch import nn

from tfgw.nn.linear import Linear, Perceptron


@pytest.mark.parametrize("with_gradients", [False, True])  # by native code, and by PyTorch
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [5, 8])
def test_rows_are_mapped_one_by_one(dtype: torch.dtype, columns: int, with_gradients: bool) -> None:
    torch.manual_seed(0)
    layers = [Linear(columns, 24), nn.ReLU(), Linear(24, 3)]
    network = Perceptron(*layers).to(dtype).eval()
    x = torch.randn(48, columns, dtype=dtype)
    with torch.set_grad_enabled(with_gradients):
        expected = torch.cat([network(row[None]) for row in x])
        for rows in (slice(0, 16), slice(1, 17), slice(3, 48), slice(0, 48)):
            assert torch.equal(network(x[rows]), expected[rows])
            assert torch.equal(nn.Sequential(*layers)(x[rows]), expected[rows])
        unaligned = torch.empty(x.numel() + 1, dtype=dtype)[1:].view_as(x).copy_(x)
        assert torch.equal(network(unaligned), expected)
        assert torch.equal(layers[0](unaligned), layers[0](x))
        assert torch.equal(layers[0](x.T.contiguous().T), layers[0](x))


def test_wrong_numbers_of_columns_are_refused() -> None:
    for columns in (4, 6, 8):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            Perceptron(Linear(5, 2)).eval()(torch.ones(16, columns))

"""Integrated gradients along a line: known answers, and a numerical integral."""

import pytest
import torch
from torch import nn

from tfgw.explanations.head_path import mean_gradients
from tfgw.nn.heads import prediction_head


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_one_kink() -> None:
    """relu(a + b − 1) from (0, 0) to (3, 1) is flat for a quarter of the way, then has slope 1 in both."""
    linear = nn.Linear(2, 1).double()
    with torch.no_grad():
        linear.weight.fill_(1)
        linear.bias.fill_(-1)
    found = mean_gradients(nn.Sequential(linear, nn.ReLU()), doubles(0, 0), doubles(3, 1))
    torch.testing.assert_close(found, doubles(0.75, 0.75)[None], rtol=0, atol=1e-15)


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
@pytest.mark.parametrize("normalize", [False, True])
def test_equals_a_numerical_integral(layers: int, normalize: bool, seed: int) -> None:
    torch.manual_seed(seed)
    head = prediction_head(5, 3, hidden_layers=layers, normalize=normalize).double()
    head(torch.randn(64, 5, dtype=torch.float64) * 2 + 1)  # statistics that are not those of a new layer
    head.eval()
    start, end = torch.randn(2, 5, dtype=torch.float64)
    points = (start + ((torch.arange(20_000) + 0.5) / 20_000)[:, None] * (end - start)).requires_grad_()
    outputs = head(points)
    integral = torch.stack(
        [torch.autograd.grad(outputs[:, c].mean(), points, retain_graph=True)[0].sum(0) for c in range(3)]
    )
    torch.testing.assert_close(mean_gradients(head, start, end), integral, rtol=0, atol=2e-4)
    change = head(end[None])[0] - head(start[None])[0]
    torch.testing.assert_close(mean_gradients(head, start, end) @ (end - start), change, rtol=0, atol=1e-12)


def test_a_line_of_length_zero() -> None:
    head = prediction_head(4, 2, hidden_layers=2).double().eval()
    point = torch.randn(4, dtype=torch.float64)
    assert torch.isfinite(mean_gradients(head, point, point)).all()


def test_other_activations_are_refused() -> None:
    head = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 2)).double()
    with pytest.raises(ValueError, match="not piecewise linear"):
        mean_gradients(head, doubles(0, 0, 0), doubles(3, -2, 5))

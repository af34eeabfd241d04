import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from tfgw.nn import project_simplex


def by_root_finding(v: np.ndarray) -> np.ndarray:
    """max(v − θ, 0) with the θ at which it sums to 1, found without sorting."""
    theta = brentq(lambda t: np.maximum(v - t, 0).sum() - 1, v.min() - 2, v.max(), xtol=1e-15, rtol=1e-15)
    return np.maximum(v - theta, 0)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_projection_agrees_with_root_finding(size: int, scale: float, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(scale=scale, size=(5, size))
    expected = [by_root_finding(row) for row in rows]
    np.testing.assert_allclose(project_simplex(torch.from_numpy(rows)).numpy(), expected, atol=1e-12)


def test_projection_is_on_the_simplex_and_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = torch.from_numpy(rng.normal(size=(3, 4, 6)))
    projected = project_simplex(v)
    assert projected.shape == v.shape
    assert float(projected.min()) >= 0
    torch.testing.assert_close(projected.sum(-1), torch.ones(3, 4, dtype=torch.float64))
    others = torch.from_numpy(rng.dirichlet(np.ones(6), size=(50, 3, 4)))
    assert bool(((others - v).norm(dim=-1) >= (projected - v).norm(dim=-1)).all())


def test_points_of_the_simplex_stay() -> None:
    v = torch.tensor([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(project_simplex(v), v, rtol=0, atol=1e-16)


def test_small_entries_become_exactly_zero() -> None:
    projected = project_simplex(torch.tensor([0.9, 0.8, -0.2, 0.1]))
    assert projected.tolist()[2:] == [0.0, 0.0]
    torch.testing.assert_close(projected[:2], torch.tensor([0.55, 0.45]))


def test_ties_are_shared() -> None:
    torch.testing.assert_close(project_simplex(torch.full((2, 5), 3.0)), torch.full((2, 5), 0.2))


@pytest.mark.parametrize("offset", [-1e4, 1e2, 1e4])
def test_large_single_precision_entries_still_sum_to_1(offset: float) -> None:
    v = torch.linspace(0, 1, 9) + offset
    torch.testing.assert_close(project_simplex(v).sum(), torch.tensor(1.0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
def test_rows_far_from_the_simplex_keep_their_sum_in_single_precision(offset: float) -> None:
    rows = torch.rand(50, 17, generator=torch.Generator().manual_seed(3)) * 0.3 + offset
    assert float((project_simplex(rows).double().sum(-1) - 1).abs().max()) < 1e-6

"""Kernel ridge regression: closed-form leave-one-out errors against retraining, scikit-learn's machine, weights."""

import math

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from torch import Tensor
from torch.nn.functional import cross_entropy

from tfgw.train import kernel_ridge
from tfgw.train.kernel_ridge import (
    PENALTIES,
    RATES,
    RidgeFit,
    advantage,
    fit_ridge,
    mixture_weights,
    sharpness,
)


def points(count: int = 23, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Distances between random points, and two smooth targets of them."""
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.normal(size=(count, 3)))
    targets = torch.stack([x[:, 0].sin(), x[:, 1] * x[:, 2]], dim=1) + 0.1 * torch.from_numpy(
        rng.normal(size=(count, 2))
    )
    return torch.cdist(x, x).square(), targets


def test_coefficients_are_those_of_scikit_learn() -> None:
    distances, targets = points()
    found = fit_ridge(distances, targets)
    kernel = torch.exp(-found.rate * distances).numpy()
    machine = KernelRidge(alpha=found.penalty, kernel="precomputed").fit(kernel, targets.numpy())
    np.testing.assert_allclose(kernel @ found.coefficients.numpy(), machine.predict(kernel), atol=1e-8)


def test_equal_graphs_share_their_coefficients() -> None:
    """Scores are those of any machine with the same sums: only these matter."""
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.normal(size=(17, 3)))
    x[[9, 12]] = x[4].clone()
    x[15] = x[1].clone()
    targets = torch.from_numpy(rng.normal(size=(17, 2)))
    distances = (x[:, None] - x).square().sum(-1)
    found = fit_ridge(distances, targets)
    for copies in ([4, 9, 12], [1, 15]):
        assert float(targets[copies].std(0).min()) > 0.1
        assert torch.equal(found.coefficients[copies], found.coefficients[copies[:1]].expand(len(copies), 2))
    assert len({tuple(row) for row in found.coefficients.tolist()}) == 14
    kernel = torch.exp(-found.rate * distances).numpy()
    machine = KernelRidge(alpha=found.penalty, kernel="precomputed").fit(kernel, targets.numpy())
    new = torch.from_numpy(rng.normal(size=(5, 3)))
    rows = torch.exp(-found.rate * (new[:, None] - x).square().sum(-1)).numpy()
    np.testing.assert_allclose(rows @ found.coefficients.numpy(), machine.predict(rows), atol=1e-8)


def test_leave_one_out_predictions_are_those_of_machines_without_the_graph() -> None:
    distances, targets = points()
    found = fit_ridge(distances, targets)
    kernel = torch.exp(-found.rate * distances).numpy()
    for left_out in (0, 7, 22):
        others = np.delete(np.arange(23), left_out)
        machine = KernelRidge(alpha=found.penalty, kernel="precomputed")
        machine.fit(kernel[np.ix_(others, others)], targets[others].numpy())
        expected = machine.predict(kernel[np.ix_([left_out], others)])[0]
        np.testing.assert_allclose(found.left_out[left_out].numpy(), expected, atol=1e-7)
    assert found.error == pytest.approx(float((found.left_out - targets).square().mean()), rel=1e-12)


def test_the_chosen_setting_has_the_smallest_error_of_all() -> None:
    distances, targets = points()
    found = fit_ridge(distances, targets)
    scale = float(distances.median())
    errors = {}
    for rate in RATES:
        kernel = torch.exp(-rate / scale * distances).numpy()
        for penalty in PENALTIES:
            hat = np.linalg.solve(kernel + penalty * np.eye(23), kernel).T
            residual = (targets.numpy() - hat @ targets.numpy()) / (1 - np.diag(hat))[:, None]
            errors[rate / scale, penalty] = float((residual**2).mean())
    assert min(errors, key=errors.__getitem__) == pytest.approx((found.rate, found.penalty))
    assert min(errors.values()) == pytest.approx(found.error, rel=1e-6)


def test_an_integer_weight_is_as_many_copies() -> None:
    """Up to the penalty, which is compared with the mean weight."""
    distances, targets = points(9)
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    found = fit_ridge(distances, targets, weights)
    copies = torch.arange(9).repeat_interleave(weights.long())
    kernel = torch.exp(-found.rate * distances)
    repeated = kernel[copies][:, copies].numpy()
    machine = KernelRidge(alpha=found.penalty * float(weights.mean()), kernel="precomputed")
    machine.fit(repeated, targets[copies].numpy())
    expected = machine.predict(kernel[:, copies].numpy())
    np.testing.assert_allclose((kernel @ found.coefficients).numpy(), expected, atol=1e-7)
    assert not torch.allclose(found.coefficients, fit_ridge(distances, targets).coefficients)


def test_directions_of_negative_eigenvalues_are_left_out() -> None:
    """Distances that no points have: the kernel is indefinite, and predictions stay bounded."""
    distances = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]], dtype=torch.float64)
    targets = torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64)
    found = fit_ridge(distances, targets)
    kernel = torch.exp(-found.rate * distances)
    values, vectors = torch.linalg.eigh(kernel)
    negative = vectors[:, values < 0]
    assert (negative.T @ found.coefficients).abs().sum() < 1e-10
    assert (kernel @ found.coefficients).abs().max() <= 1.5


def test_equal_graphs_do_not_divide_by_zero() -> None:
    found = fit_ridge(torch.zeros(5, 5, dtype=torch.float64), torch.eye(5, dtype=torch.float64)[:, :2] - 0.2)
    assert found.coefficients.isfinite().all()


def test_many_graphs_choose_the_rate_on_some_and_the_penalty_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    distances, targets = points(61)
    ratio = float(distances[::4, ::4].median() / distances.median())
    expected = fit_ridge(distances[::4, ::4], targets[::4], rates=[rate * ratio for rate in RATES])
    monkeypatch.setattr(kernel_ridge, "LARGEST_SEARCH", 16)
    found = fit_ridge(distances, targets)
    assert found.rate == pytest.approx(expected.rate)
    assert found.coefficients.shape == (61, 2)


def test_the_share_that_a_machine_explains() -> None:
    distances, targets = points()
    found = fit_ridge(distances, targets)
    variance = float(targets.var(0, correction=0).mean())
    assert found.explained == pytest.approx(1 - found.error / variance, rel=1e-12)
    assert 0.2 < found.explained < 1
    unrelated = torch.from_numpy(np.random.default_rng(1).choice([-1.0, 1.0], (23, 1)))
    assert fit_ridge(torch.ones(23, 23).double() - torch.eye(23).double(), unrelated).explained < 0.05
    assert fit_ridge(distances, torch.zeros_like(targets)).explained == 0


def test_the_majority_class_explains_nothing() -> None:
    """One class has 27 of 30 graphs. Equal graphs get the same prediction, which favours it."""
    targets = torch.nn.functional.one_hot(torch.tensor([0] * 27 + [1] * 3)).double() - 0.5
    found = fit_ridge(torch.zeros(30, 30, dtype=torch.float64), targets)
    assert (found.left_out[:, 0] > found.left_out[:, 1]).all()
    assert found.explained == 0


def test_the_variance_is_weighted() -> None:
    """An integer weight is as many copies."""
    distances, targets = points(9)
    weights = torch.tensor([1.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    found = fit_ridge(distances, targets, weights)
    variance = float(targets.repeat_interleave(weights.long(), 0).var(0, correction=0).mean())
    error = float((weights[:, None] * (found.left_out - targets).square()).sum() / (2 * weights.sum()))
    assert found.explained == pytest.approx(1 - error / variance, rel=1e-9)


def test_machines_are_weighted_by_the_square_of_what_they_explain() -> None:
    nothing = torch.zeros(1, 1)
    fits = [RidgeFit(1.0, 1.0, nothing, nothing, 0.5, explained) for explained in (0.1, 0.3, 0.0)]
    np.testing.assert_allclose(mixture_weights(fits).numpy(), [0.1, 0.9, 0.0])
    np.testing.assert_allclose(mixture_weights(fits[2:] * 4).numpy(), 0.25)


def test_sharpness_maximises_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    classes = torch.from_numpy(rng.integers(0, 3, 400))
    scores = torch.nn.functional.one_hot(classes, 3).double() + torch.from_numpy(rng.normal(size=(400, 3)))
    best = sharpness(scores, classes)
    losses = [float(cross_entropy(f * best * scores, classes, label_smoothing=3 / 403)) for f in (0.9, 1.0, 1.1)]
    assert losses[1] < min(losses[0], losses[2])
    assert sharpness(-scores, classes) == pytest.approx(1e-3)  # scores that say nothing are flattened


def test_no_training_set_makes_probabilities_certain() -> None:
    """All 38 graphs are right by the same margin: by Laplace's rule, the 39th is so with probability 39/40."""
    classes = torch.arange(38) % 2
    scores = torch.nn.functional.one_hot(classes).double() - 0.5
    probabilities = torch.softmax(sharpness(scores, classes) * scores, 1)
    np.testing.assert_allclose(probabilities[torch.arange(38), classes].numpy(), 39 / 40, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_large_kernels_are_factorised_with_the_same_result(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    """The search starts from another γ and λ: those of every fourth graph."""
    distances, targets = points(43)
    weights = torch.linspace(0.5, 2.0, 43, dtype=torch.float64) if weighted else None
    expected = fit_ridge(distances, targets, weights)
    ratio = float(distances[::4, ::4].median() / distances.median())
    some = None if weights is None else weights[::4]
    start = fit_ridge(distances[::4, ::4], targets[::4], some, rates=[rate * ratio for rate in RATES])
    assert start.rate != pytest.approx(expected.rate)
    monkeypatch.setattr(kernel_ridge, "LARGEST_SEARCH", 11)
    monkeypatch.setattr(kernel_ridge, "LARGEST_DECOMPOSITION", 42)
    monkeypatch.setattr(kernel_ridge, "COLUMNS", 16)
    decompose = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda K: decompose(K) if len(K) == 11 else pytest.fail("decomposed"))
    found = fit_ridge(distances, targets, weights)
    assert (found.rate, found.penalty) == (expected.rate, expected.penalty)
    torch.testing.assert_close(found.left_out, expected.left_out, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(found.coefficients, expected.coefficients, atol=1e-6, rtol=1e-6)
    assert found.error == pytest.approx(expected.error, rel=1e-8)


def test_large_kernels_need_a_penalty_above_their_negative_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]], dtype=torch.float64)
    targets = torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64)
    scale = float(distances.median())
    smallest = float(torch.linalg.eigvalsh(torch.exp(-0.1 / scale * distances))[0])
    assert smallest < -0.001
    monkeypatch.setattr(kernel_ridge, "LARGEST_DECOMPOSITION", 2)
    found = fit_ridge(distances, targets, rates=(0.1,))
    assert found.penalty > -smallest
    monkeypatch.setattr(kernel_ridge, "PENALTIES", (1e-4, 1e-3, 10.0))
    assert fit_ridge(distances, targets, rates=(0.1,)).penalty == 10.0  # however far the start is
    monkeypatch.setattr(kernel_ridge, "PENALTIES", (-smallest / 2,))
    decomposed = fit_ridge(distances, targets, rates=(0.1,))  # no penalty is large enough
    monkeypatch.setattr(kernel_ridge, "LARGEST_DECOMPOSITION", 3)
    assert torch.equal(decomposed.coefficients, fit_ridge(distances, targets, rates=(0.1,)).coefficients)


def test_advantages_are_in_standard_errors() -> None:
    """Errors of one graph in four differ by 1, so their mean by 1/4 ± √(3/16 / (n − 1))."""
    for count in (12, 16):
        targets = torch.ones(count, 1, dtype=torch.float64)
        others = targets.clone()
        others[::4] = 0
        expected = 0.25 / math.sqrt(3 / 16 / (count - 1))
        assert advantage(targets, others, targets) == pytest.approx(expected)
        assert advantage(others, targets, targets) == pytest.approx(-expected)
        assert advantage(0.1 * targets, 5 * others, targets) == pytest.approx(expected)  # the scale does not matter


def test_equal_gains_of_all_graphs_have_no_standard_error() -> None:
    targets, nothing = torch.ones(7, 1, dtype=torch.float64), torch.zeros(7, 1, dtype=torch.float64)
    assert advantage(targets, nothing, targets) == math.inf
    assert advantage(nothing, targets, targets) == -math.inf
    assert advantage(nothing, nothing, targets) == 0


def test_graphs_without_weight_do_not_count() -> None:
    targets = torch.ones(40, 2, dtype=torch.float64)
    others = targets.clone()
    others[::3] = 0
    weights = torch.ones(40, dtype=torch.float64)
    assert advantage(targets, others, targets, weights) > 4
    weights[::3] = 0
    assert advantage(targets, others, targets, weights) == 0

"""Kernel ridge regression on exp(−γ distance), with the leave-one-out error of every setting in closed form.

With K = U Λ Uᵀ and targets Y, the predictions for training graphs are H Y, H = U Λ (Λ + λ)⁻¹ Uᵀ, and the prediction for
graph i by a machine that was trained without it is ((H Y)_i − H_ii Y_i) / (1 − H_ii). So a decomposition of K gives the
leave-one-out error for every λ. Distances between graphs need not give a positive definite kernel: negative
eigenvalues are left out.

Weights w of graphs minimise Σ w_i (y_i − f_i)² + λ ‖f‖²: the same with √w K √w and √w Y.
"""

from typing import NamedTuple

import torch
from torch import Tensor

RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Values of γ to choose from, relative to the median distance."""
PENALTIES = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 10.0)
"""Values of λ to choose from."""
LARGEST_SEARCH = 1000
"""γ is chosen on at most so many graphs, evenly spaced: a decomposition costs the cube of their number."""


class RidgeFit(NamedTuple):
    """The machine with the smallest leave-one-out error.

    Attributes:
        rate: γ.
        penalty: λ.
        coefficients: What kernel values are multiplied with, ``(num_graphs, num_targets)``.
        left_out: Predictions for each graph by a machine that was trained without it.
        error: Their mean squared error.
    """

    rate: float
    penalty: float
    coefficients: Tensor
    left_out: Tensor
    error: float

    def cpu(self) -> "RidgeFit":
        """The same machine with its tensors on the CPU."""
        return self._replace(coefficients=self.coefficients.cpu(), left_out=self.left_out.cpu())


def fit_ridge(distances: Tensor, targets: Tensor, weights: Tensor | None = None) -> RidgeFit:
    """Choose γ and λ by leave-one-out error, and fit.

    Args:
        distances: Distances between the training graphs ``(n, n)``, in double precision.
        targets: What is to be predicted ``(n, num_targets)``, centred.
        weights: How much each graph counts ``(n,)``; ``None``: all the same.
    """
    roots = torch.ones_like(targets[:, 0]) if weights is None else (weights / weights.mean()).sqrt()
    scale = _typical(distances)
    step = -(-len(targets) // LARGEST_SEARCH)
    few = slice(None, None, step)
    searched = [_best(distances[few, few], targets[few], roots[few], rate / scale) for rate in RATES]
    best = min(searched, key=lambda found: found.error)
    return best if step == 1 else _best(distances, targets, roots, best.rate)


def _typical(distances: Tensor) -> float:
    """The median distance; where more than half are 0, the mean; where all are, 1."""
    median = float(distances.median())
    return median or float(distances.mean()) or 1.0


def _best(distances: Tensor, targets: Tensor, roots: Tensor, rate: float) -> RidgeFit:
    kernel = torch.exp(-rate * distances) * roots[:, None] * roots
    values, vectors = torch.linalg.eigh((kernel + kernel.T) / 2)
    kept = values > 0
    values, vectors = values[kept], vectors[:, kept]
    projected, squares = vectors.T @ (targets * roots[:, None]), vectors.square()
    best: RidgeFit | None = None
    for penalty in PENALTIES:
        shares = values / (values + penalty)
        leverage = (squares @ shares)[:, None]
        fitted = vectors @ (shares[:, None] * projected)
        left_out = (fitted - leverage * targets * roots[:, None]) / (1 - leverage).clamp_min(1e-9) / roots[:, None]
        error = float(((left_out - targets) * roots[:, None]).square().mean())
        if best is None or error < best.error:
            coefficients = vectors @ (projected / (values + penalty)[:, None]) * roots[:, None]
            best = RidgeFit(rate, penalty, coefficients, left_out, error)
    assert best is not None
    return best


def sharpness(scores: Tensor, classes: Tensor) -> float:
    """The factor of class scores at which their softmax has the largest likelihood.

    Args:
        scores: ``(num_graphs, num_classes)``, of machines that were trained without the graph.
        classes: The class of each graph ``(num_graphs,)``.
    """
    # The likelihood is concave in the factor: a search that narrows an interval around its largest value.
    low, high, golden = 0.0, 100.0, (5**0.5 - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        losses = [float(torch.nn.functional.cross_entropy(factor * scores, classes)) for factor in (left, right)]
        low, high = (low, right) if losses[0] <= losses[1] else (left, high)
    return max((low + high) / 2, 1e-3)

"""Kernel ridge regression on exp(−γ distance), with the leave-one-out error of every setting in closed form.

With K = U Λ Uᵀ and targets Y, the predictions for training graphs are H Y, where H = U Λ (Λ + λ)⁻¹ Uᵀ. The prediction
for graph i by a machine that was trained without it is ((H Y)_i − H_ii Y_i) / (1 − H_ii). Therefore, one decomposition
of K gives the leave-one-out error for every λ. The kernel of graph distances is not always positive definite; negative
eigenvalues are dropped.

For thousands of graphs, factorising A = K + λ = L Lᵀ for a few λ is several times faster than a decomposition. The same
prediction is then Y_i − (A⁻¹ Y)_i / (A⁻¹)_ii, where (A⁻¹)_ii is the squared norm of column i of L⁻¹. A λ for which A is
not positive definite is not considered. The search starts from the best γ and λ for a part of the graphs, and goes to
neighbouring values as long as the error decreases.

With sample weights w, the machine minimises Σ w_i (y_i − f_i)² + λ ‖f‖². This replaces K by √w K √w and Y by √w Y.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tfgw.nn.threads import one_thread

RATES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Candidate values of γ, relative to the median distance."""
PENALTIES = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 10.0)
"""Candidate values of λ."""
SAME = 1e-15
"""Distance, relative to the median, up to which two graphs are equal."""
LARGEST_SEARCH = 1000
"""Maximum number of graphs, evenly spaced, for which all γ are tried. A decomposition is cubic in their number."""
LARGEST_DECOMPOSITION = 2000
"""Maximum number of graphs for which the kernel is decomposed. For more graphs, it is factorised for some γ and λ."""
COLUMNS = 512
"""Number of columns of L⁻¹ that are computed at a time."""


class RidgeFit(NamedTuple):
    """The machine with the smallest leave-one-out error.

    Attributes:
        rate: γ.
        penalty: λ.
        coefficients: Coefficients of the kernel values, ``(num_graphs, num_targets)``.
        left_out: Leave-one-out predictions, ``(num_graphs, num_targets)``.
        error: Mean squared leave-one-out error.
        explained: Share of the variance of the targets that leave-one-out predictions explain: 1 − error / variance, or
            0 if that is negative.
    """

    rate: float
    penalty: float
    coefficients: Tensor
    left_out: Tensor
    error: float
    explained: float = 0.0

    def cpu(self) -> "RidgeFit":
        """Return the machine with its tensors on the CPU."""
        return self._replace(coefficients=self.coefficients.cpu(), left_out=self.left_out.cpu())


def fit_ridge(
    distances: Tensor, targets: Tensor, weights: Tensor | None = None, *, rates: Sequence[float] = RATES
) -> RidgeFit:
    """Select γ and λ by leave-one-out error, and fit.

    Args:
        distances: Distances between the training graphs ``(n, n)``, in double precision.
        targets: Targets ``(n, num_targets)``. Predictions shrink towards 0.
        weights: Sample weights ``(n,)``; ``None`` for equal weights.
        rates: Candidate values of γ, relative to the median distance.
    """
    roots = torch.ones_like(targets[:, 0]) if weights is None else (weights / weights.mean()).sqrt()
    scale = typical_distance(distances)
    step = -(-len(targets) // LARGEST_SEARCH)
    few = slice(None, None, step)
    candidates = [rate / scale for rate in rates]
    searched = [_decomposed(distances[few, few], targets[few], roots[few], rate) for rate in candidates]
    best = min(searched, key=lambda found: found.error)
    if len(targets) > LARGEST_DECOMPOSITION:
        best = _search_by_factorisation(distances, targets, roots, candidates, start=best) or _decomposed(
            distances, targets, roots, best.rate
        )
    elif step > 1:
        best = _decomposed(distances, targets, roots, best.rate)
    variance = _variance(targets, roots)
    return best._replace(
        coefficients=_shared(best.coefficients, distances <= SAME * scale),
        explained=max(0.0, 1 - best.error / variance) if variance > 0 else 0.0,
    )


def mixture_weights(fits: Sequence[RidgeFit]) -> Tensor:
    """Return the weight of each machine in a weighted mean of their predictions, ``(num_fits,)``.

    Weights are proportional to the square of the share of the variance that a machine explains, and equal if no machine
    explains anything. They depend on a few numbers only, so they do not overfit as fitted weights do.
    """
    squares = torch.tensor([fit.explained for fit in fits], dtype=torch.float64).square()
    total = squares.sum()
    return squares / total if total > 0 else torch.full_like(squares, 1 / len(fits))


def mean_left_out(fits: Sequence[RidgeFit]) -> Tensor:
    """Return the weighted mean of the leave-one-out predictions, ``(num_graphs, num_targets)``."""
    return (mixture_weights(fits)[:, None, None] * torch.stack([fit.left_out for fit in fits])).sum(0)


def advantage(left_out: Tensor, others: Tensor, targets: Tensor, weights: Tensor | None = None) -> float:
    """Return by how much the error of predictions is smaller than that of others, in standard errors.

    Both predictions are scaled first so that their errors are minimal: predictions shrink towards 0, the mean of
    several predictions more than others.

    Args:
        left_out: Leave-one-out predictions ``(num_graphs, num_targets)``.
        others: Leave-one-out predictions of another machine.
        targets: The targets.
        weights: Sample weights ``(num_graphs,)``; ``None`` for equal weights.
    """
    counted = (torch.ones_like(targets[:, 0]) if weights is None else weights.to(targets))[:, None]
    errors = []
    for predicted in (left_out, others):
        scale = (counted * predicted * targets).sum() / (counted * predicted.square()).sum().clamp_min(1e-300)
        errors.append((counted * (scale * predicted - targets).square()).mean(1))
    gain = errors[1] - errors[0]
    mean, deviation = float(gain.mean()), float(gain.std())
    return mean / deviation * len(gain) ** 0.5 if deviation > 0 else math.copysign(math.inf, mean) if mean else 0.0


def _shared(coefficients: Tensor, is_same: Tensor) -> Tensor:
    """Divide coefficients evenly among equal graphs. Only their sum matters; rounding decides about their differences.

    Args:
        coefficients: ``(n, num_targets)``.
        is_same: Whether two graphs are equal, ``(n, n)``.
    """
    count = len(coefficients)
    numbers = torch.arange(count, dtype=torch.int32, device=coefficients.device)
    first = torch.where(is_same, numbers[:, None], count).amin(0).minimum(numbers).long()  # of each graph's copies
    sums = torch.zeros_like(coefficients).index_add_(0, first, coefficients)
    return (sums / torch.bincount(first, minlength=count).clamp_min(1)[:, None])[first]


def typical_distance(distances: Tensor) -> float:
    """Return the median distance, the mean if the median is 0, or 1 if all distances are 0."""
    median = float(distances.median())
    return median or float(distances.mean()) or 1.0


def _kernel(distances: Tensor, roots: Tensor, rate: float) -> Tensor:
    """Return the weighted kernel. Factorisations and decompositions read only its lower triangle."""
    return (-rate * distances).exp_().mul_(roots[:, None]).mul_(roots)


def _variance(targets: Tensor, roots: Tensor) -> float:
    """Return the weighted variance, averaged over targets. A constant prediction explains nothing of it."""
    shares = roots.square()[:, None]
    mean = (shares * targets).sum(0) / shares.sum()
    return float((shares * (targets - mean).square()).mean())


def _search_by_factorisation(
    distances: Tensor, targets: Tensor, roots: Tensor, rates: Sequence[float], start: RidgeFit
) -> RidgeFit | None:
    """Search from the γ and λ of ``start``. Return ``None`` if all matrices on the way are not positive definite."""
    found: dict[tuple[int, int], RidgeFit | None] = {}

    def error_at(place: tuple[int, int]) -> float:
        rate, penalty = place
        if not (0 <= rate < len(rates) and 0 <= penalty < len(PENALTIES)):
            return math.inf
        if place not in found:
            found[place] = _factorised_fit(distances, targets, roots, rates[rate], PENALTIES[penalty])
        fit = found[place]
        return math.inf if fit is None else fit.error

    rate, penalty = rates.index(start.rate), PENALTIES.index(start.penalty)
    while penalty < len(PENALTIES) - 1 and math.isinf(error_at((rate, penalty))):
        penalty += 1
    # A smaller γ with a smaller λ gives a similar machine, so the best ones are on a diagonal.
    directions = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (1, 1)]
    tried = 0
    while tried < len(directions):  # in the direction of the last success first, because every step factorises a matrix
        step = directions[tried]
        if error_at((rate + step[0], penalty + step[1])) < error_at((rate, penalty)):
            rate, penalty = rate + step[0], penalty + step[1]
            directions.insert(0, directions.pop(tried))
            tried = 0
        else:
            tried += 1
    return found[rate, penalty]


def _factorised_fit(distances: Tensor, targets: Tensor, roots: Tensor, rate: float, penalty: float) -> RidgeFit | None:
    """Return the machine, or ``None`` if its matrix is not positive definite."""
    shifted = _kernel(distances, roots, rate)
    shifted.diagonal().add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    if failed:
        return None
    solved = torch.cholesky_solve(targets * roots[:, None], factor)
    left_out = targets - solved / _inverse_diagonal(factor)[:, None] / roots[:, None]
    error = float(((left_out - targets) * roots[:, None]).square().mean())
    return RidgeFit(rate, penalty, solved * roots[:, None], left_out, error)


def _inverse_diagonal(factor: Tensor) -> Tensor:
    """Return the diagonal of (L Lᵀ)⁻¹ for a lower triangular matrix L.

    The first rows of a column of L⁻¹ are 0, so that only the last rows are solved for, COLUMNS columns at a time.
    """
    found = torch.empty_like(factor[0])
    for first in range(0, len(factor), COLUMNS):
        rest = factor[first:, first:]
        unit = torch.eye(len(rest), min(COLUMNS, len(rest)), dtype=factor.dtype, device=factor.device)
        columns = torch.linalg.solve_triangular(rest, unit, upper=False)
        found[first : first + COLUMNS] = columns.square().sum(0)
    return found


def _decomposed(distances: Tensor, targets: Tensor, roots: Tensor, rate: float) -> RidgeFit:
    """Return the machine of the best λ."""
    # More threads save little time on small matrices, and cost much on a busy machine, where they wait for each other.
    with one_thread() if len(distances) <= LARGEST_SEARCH else nullcontext():
        return _best_penalty(_kernel(distances, roots, rate), targets, roots, rate)


def _best_penalty(kernel: Tensor, targets: Tensor, roots: Tensor, rate: float) -> RidgeFit:
    values, vectors = torch.linalg.eigh(kernel)
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
    """Return the factor of the class scores that maximises the likelihood of their softmax.

    Args:
        scores: Leave-one-out scores ``(num_graphs, num_classes)``.
        classes: The class of each graph ``(num_graphs,)``.
    """
    # One more graph of every class (Laplace's rule): otherwise the factor is infinite if all graphs are separated.
    unseen = scores.shape[1] / (len(scores) + scores.shape[1])
    # The log-likelihood is concave in the factor: golden-section search.
    low, high, golden = 0.0, 100.0, (5**0.5 - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        losses = [float(cross_entropy(factor * scores, classes, label_smoothing=unseen)) for factor in (left, right)]
        low, high = (low, right) if losses[0] <= losses[1] else (left, high)
    return max((low + high) / 2, 1e-3)

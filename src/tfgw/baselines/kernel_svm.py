"""Support vector machines on precomputed kernels, definite or indefinite, and their model selection."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

MAX_ITER = 100_000
"""Maximum number of libsvm iterations. With a large C on inseparable graphs, it would otherwise run for hours."""


class KernelSVM:
    """scikit-learn's SVC on a kernel matrix.

    Args:
        cost: The parameter C.
        indefinite: Whether to solve in a Kreĭn space (Loosli, Canu, Ong: Learning SVM in Kreĭn Spaces. PAMI 2016), as
            the authors of the continuous WWL kernel do: training uses the absolute eigenvalues of the kernel, and the
            coefficients are transformed back. Multiplication by :func:`signs` does both, for the kernels of training
            and of prediction.
    """

    def __init__(self, cost: float, *, indefinite: bool = False) -> None:
        self.cost = cost
        self.indefinite = indefinite

    def fit(self, kernel: np.ndarray, labels: np.ndarray) -> Self:
        """Train on the kernel between training graphs."""
        self.signs = signs(kernel) if self.indefinite else None
        self.svc = _fitted(self.cost, self._flipped(kernel), labels)
        return self

    def predict(self, kernel: np.ndarray) -> np.ndarray:
        """Predict labels from the kernel between other graphs (rows) and the training graphs."""
        return self.svc.predict(self._flipped(kernel))

    def decision_function(self, kernel: np.ndarray) -> np.ndarray:
        """Distances to the margins."""
        return self.svc.decision_function(self._flipped(kernel))

    def _flipped(self, kernel: np.ndarray) -> np.ndarray:
        return kernel if self.signs is None else kernel @ self.signs


def signs(kernel: np.ndarray) -> np.ndarray:
    """Return U sign(Λ) Uᵀ for a kernel K = U Λ Uᵀ; its product with K has the eigenvalues |Λ|."""
    eigenvalues, vectors = np.linalg.eigh((kernel + kernel.T) / 2)
    return (vectors * np.where(eigenvalues < 0, -1, 1)) @ vectors.T


class Choice(NamedTuple):
    """Selected kernel and C; ``score`` is their accuracy in cross-validation, if there was one."""

    kernel: Any
    cost: float
    score: float | None


def choose(
    kernels: Iterable[tuple[Any, np.ndarray]],
    labels: np.ndarray,
    *,
    costs: Sequence[float],
    folds: int,
    indefinite: bool = False,
    seed: int,
) -> Choice:
    """Select the best kernel (identified by the first entry of each pair) and C in a stratified cross-validation.

    Ties are broken in favour of the first.
    """
    parts = _parts(labels, folds, seed)
    candidates = (
        Choice(name, cost, score)
        for name, kernel in kernels
        for cost, score in zip(costs, _scores(kernel, labels, costs, parts, indefinite), strict=True)
    )
    return max(candidates, key=lambda choice: choice.score or 0.0)


def _parts(labels: np.ndarray, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if min(folds, smallest) < 2:
        raise ValueError(
            f"inner_folds: cross-validation with {folds} folds and a class of {smallest} graphs is not possible;"
            " give every parameter a single value"
        )
    splitter = StratifiedKFold(min(folds, smallest), shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels))


def _scores(
    kernel: np.ndarray,
    labels: np.ndarray,
    costs: Sequence[float],
    parts: list[tuple[np.ndarray, np.ndarray]],
    indefinite: bool,
) -> np.ndarray:
    """Return the mean accuracy of each C over the folds."""
    scores = np.zeros(len(costs))
    for train, test in parts:
        within, across = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
        if indefinite:
            flip = signs(within)
            within, across = within @ flip, across @ flip
        for number, cost in enumerate(costs):
            predicted = _fitted(cost, within, labels[train]).predict(across)
            scores[number] += (predicted == labels[test]).mean() / len(parts)
    return scores


def _fitted(cost: float, kernel: np.ndarray, labels: np.ndarray) -> SVC:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Nothing is random here, but without a seed scikit-learn would use NumPy's global state.
        return SVC(C=cost, kernel="precomputed", max_iter=MAX_ITER, random_state=0).fit(kernel, labels)

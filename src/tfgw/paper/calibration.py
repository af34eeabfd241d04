"""Expected calibration error: does a model that predicts with a confidence of 80 % err on one graph in five?

Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks. ICML 2017. https://arxiv.org/abs/1706.04599
"""

from collections.abc import Sequence

import numpy as np

BINS = 15
"""Number of bins of equal width between 0 and 1."""

Bin = tuple[int, float, int]
"""Predictions with a confidence in one bin: their number, the sum of their confidences, and how many are correct."""


def calibration_bins(confidence: np.ndarray, correct: np.ndarray) -> list[Bin]:
    """Sort predictions into bins by confidence, the probability of the predicted class.

    Bins of several test sets can be added, so that the error of small test sets is that of all their graphs together.
    """
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    inside = [place == number for number in range(BINS)]
    return [(int(these.sum()), float(confidence[these].sum()), int(correct[these].sum())) for these in inside]


def calibration_error(bins: Sequence[Sequence[Bin]]) -> float:
    """Return the mean gap between confidence and accuracy over all predictions of several test sets."""
    count, confidence, correct = np.array(bins, dtype=float).sum(0).T
    return float(np.abs(confidence - correct).sum() / count.sum())

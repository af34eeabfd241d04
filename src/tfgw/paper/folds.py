"""Stratified splits of a dataset for the protocols."""

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

FOLDS = 10


class Fold(NamedTuple):
    """Sorted positions in the dataset."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def k_fold(
    indices: np.ndarray, labels: np.ndarray, *, seed: int, groups: np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ten pairs of training and held-out graphs, stratified by class; graphs of a group stay together."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(FOLDS, shuffle=True, random_state=seed)
    parts = splitter.split(indices, labels[indices], None if groups is None else groups[indices])
    return [(indices[kept], indices[drawn]) for kept, drawn in parts]


def draw_tenth(
    indices: np.ndarray, labels: np.ndarray, *, seed: int, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Hold out a tenth of the graphs, stratified by class; graphs of a group stay together."""
    if groups is not None:
        return k_fold(indices, labels, seed=seed, groups=groups)[0]
    kept, drawn = train_test_split(indices, test_size=1 / FOLDS, random_state=seed, stratify=labels[indices])
    return np.sort(kept), np.sort(drawn)

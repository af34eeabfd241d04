"""How graphs are divided into those to train on, to choose by, and to measure on.

``paper``   a tenth of the graphs is held out; ten folds of the others take turns as validation graphs, and each of
            the ten models predicts the hold-out. Repeated with other hold-outs.
``fair``    (Errica et al., ICLR 2020) ten folds take turns as test graphs; a tenth of the others validates.

Both are stratified by class. With ``groups``, graphs of one group stay together.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

FOLDS = 10


class Fold(NamedTuple):
    """Sorted positions in the dataset."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def paper_folds(labels: np.ndarray, *, seed: int, groups: np.ndarray | None = None) -> list[Fold]:
    """The folds around the hold-out with the number ``seed``."""
    everything = np.arange(len(labels))
    kept, test = _draw_tenth(everything, labels, seed=seed, groups=groups)
    return [Fold(train, validation, test) for train, validation in _k_fold(kept, labels, seed=seed, groups=groups)]


def fair_folds(labels: np.ndarray, *, seed: int, groups: np.ndarray | None = None) -> list[Fold]:
    """Every graph is in the test part of one fold."""
    folds = []
    for kept, test in _k_fold(np.arange(len(labels)), labels, seed=seed, groups=groups):
        train, validation = _draw_tenth(kept, labels, seed=seed, groups=groups)
        folds.append(Fold(train, validation, test))
    return folds


def _k_fold(
    indices: np.ndarray, labels: np.ndarray, *, seed: int, groups: np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(FOLDS, shuffle=True, random_state=seed)
    parts = splitter.split(indices, labels[indices], None if groups is None else groups[indices])
    return [(indices[kept], indices[drawn]) for kept, drawn in parts]


def _draw_tenth(
    indices: np.ndarray, labels: np.ndarray, *, seed: int, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    if groups is not None:
        return _k_fold(indices, labels, seed=seed, groups=groups)[0]
    kept, drawn = train_test_split(indices, test_size=1 / FOLDS, random_state=seed, stratify=labels[indices])
    return np.sort(kept), np.sort(drawn)


def read_splits(path: Path, *, num_graphs: int) -> list[Fold]:
    """Folds from a file in the format in which Errica et al. published theirs.

    The file is a JSON list with one entry per test fold: ``{"test": [...], "model_selection": [{"train": [...],
    "validation": [...]}]}``, numbers being positions of graphs in the dataset.
    """
    try:
        entries = json.loads(path.read_text())
        folds = [
            Fold(*(np.sort(np.array(part, dtype=int)) for part in (inner["train"], inner["validation"], entry["test"])))
            for entry in entries
            for inner in entry["model_selection"][:1]
        ]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: not a file of splits ({error!r})") from error
    for number, fold in enumerate(folds):
        _check(fold, num_graphs, where=f"{path}: fold {number}")
    if len(folds) != FOLDS:
        raise ValueError(f"{path}: expected {FOLDS} folds, found {len(folds)}")
    return folds


def _check(fold: Fold, num_graphs: int, *, where: str) -> None:
    everything = np.concatenate(fold)
    if not all(map(len, fold)):
        raise ValueError(f"{where}: one of train, validation, test is empty")
    if everything.min() < 0 or everything.max() >= num_graphs:
        raise ValueError(f"{where}: a graph outside 0 to {num_graphs - 1}")
    if len(np.unique(everything)) < len(everything):
        raise ValueError(f"{where}: a graph is in two parts")


def splits_file(source: Path, dataset: str) -> Path:
    """The file of splits of a dataset: ``source``, or in that folder ``DATASET_splits.json``."""
    path = source / f"{dataset}_splits.json" if source.is_dir() else source
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of splits")
    return path


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""Published splits, in the format of Errica et al."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.paper.folds import FOLDS, Fold


def read_splits(path: Path, *, num_graphs: int) -> list[Fold]:
    """Read folds from a file in the format of Errica et al.

    The file is a JSON list with one entry per test fold: ``{"test": [...], "model_selection": [{"train": [...],
    "validation": [...]}]}``. The numbers are positions of graphs in the dataset.
    """
    try:
        entries = json.loads(path.read_text())
        folds = [
            Fold(*(_positions(part) for part in (inner["train"], inner["validation"], entry["test"])))
            for entry in entries
            for inner in entry["model_selection"][:1]
        ]
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: not a file of splits ({error!r})") from error
    for number, fold in enumerate(folds):
        _check(fold, num_graphs, where=f"{path}: fold {number}")
    if len(folds) != FOLDS:
        raise ValueError(f"{path}: expected {FOLDS} folds, found {len(folds)}")
    return folds


def _positions(part: Any) -> np.ndarray:
    if not isinstance(part, list) or not all(type(position) is int for position in part):
        raise TypeError("a part is not a list of integers")
    return np.sort(np.array(part, dtype=np.int64))


def _check(fold: Fold, num_graphs: int, *, where: str) -> None:
    everything = np.concatenate(fold)
    if not all(map(len, fold)):
        raise ValueError(f"{where}: one of train, validation, test is empty")
    if everything.min() < 0 or everything.max() >= num_graphs:
        raise ValueError(f"{where}: contains a graph outside 0 to {num_graphs - 1}")
    if len(np.unique(everything)) < len(everything):
        raise ValueError(f"{where}: a graph is in two parts")


def splits_file(source: Path, dataset: str) -> Path | None:
    """Return the file of splits of a dataset: ``source``, or ``DATASET_splits.json`` in the folder ``source``.

    A folder need not have a file for every dataset: ``None`` means that it has splits of other datasets only.
    """
    path = source / f"{dataset}_splits.json" if source.is_dir() else source
    if path.is_file():
        return path
    if source.is_dir() and any(source.glob("*_splits.json")):
        return None
    raise FileNotFoundError(f"{path}: no such file of splits")


def splits_digest(source: Path | None, dataset: str) -> str | None:
    """Return the digest of the file of splits of a dataset, or ``None`` if it has none."""
    path = None if source is None else splits_file(source, dataset)
    return None if path is None else digest(path)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

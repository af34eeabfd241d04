"""Kinds of node features, and one-hot encoding."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Features = Literal["auto", "labels", "attributes", "both", "degree", "degree_scalar", "constant"]

DEFAULT_MAX_DEGREE = 64


def as_floats(table: np.ndarray, what: str) -> Tensor:
    """Convert numbers to the default floating-point type of PyTorch; they must stay finite."""
    values = torch.as_tensor(table, dtype=torch.get_default_dtype())
    if not values.isfinite().all():
        row = int(np.argwhere(~values.isfinite().numpy())[0][0])
        raise ValueError(f"{what} {row}: {table[row].max():g} is too large for {values.dtype}")
    return values


def one_hot(codes: np.ndarray, *, width: int) -> Tensor:
    """Return a one-hot row for each code; rows of negative codes are all zeros."""
    # torch's one_hot creates an int64 matrix first, which is eight times as large.
    matrix = torch.zeros(len(codes), width)
    rows = np.flatnonzero(codes >= 0)
    matrix[torch.from_numpy(rows), torch.from_numpy(codes[rows])] = 1.0
    return matrix


def codes_in(vocabulary: Sequence[Any], labels: np.ndarray) -> np.ndarray:
    """Return the index of each label in a sorted vocabulary, (rows,); −1 for unknown labels."""
    known = np.array(vocabulary)
    if known.dtype.kind != labels.dtype.kind and "U" in (known.dtype.kind, labels.dtype.kind):
        return np.full(len(labels), -1)  # text and numbers cannot be compared
    places = np.searchsorted(known, labels).clip(max=len(known) - 1)
    return np.where(known[places] == labels, places, -1)


def decoded_labels(block: np.ndarray, vocabulary: Sequence[Sequence[Any]], *, name: str) -> np.ndarray | None:
    """Return the labels, (rows, columns), that one-hot entries encode, or ``None`` if there are none."""
    columns, start = [], 0
    for known in vocabulary:
        part = block[:, start : start + len(known)]
        if not (((part == 0) | (part == 1)).all() and (part.sum(axis=1) == 1).all()):
            raise ValueError(f"{name}: is not one-hot, so the labels cannot be decoded")
        columns.append(np.array(known)[part.argmax(axis=1)])
        start += len(known)
    return np.stack(columns, axis=1) if columns else None

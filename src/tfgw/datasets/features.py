"""Kinds of node features, and one-hot encoding."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Features = Literal["auto", "labels", "attributes", "both", "degree", "degree_scalar", "constant"]

DEFAULT_MAX_DEGREE = 64


def one_hot_columns(labels: np.ndarray) -> Tensor:
    """One-hot encode each column of (rows, columns) ``labels`` over its own distinct values, side by side."""
    codes = [np.unique(column, return_inverse=True)[1] for column in labels.T]
    return torch.cat([one_hot(code, width=int(code.max()) + 1) for code in codes], dim=1)


def one_hot(codes: np.ndarray, *, width: int) -> Tensor:
    """A row for each code, of zeros alone where the code is negative."""
    # Not torch's one_hot: it makes an int64 matrix first, eight times COLLAB's 24 million entries.
    matrix = torch.zeros(len(codes), width)
    rows = np.flatnonzero(codes >= 0)
    matrix[torch.from_numpy(rows), torch.from_numpy(codes[rows])] = 1.0
    return matrix


def codes_in(vocabulary: Sequence[Any], labels: np.ndarray) -> np.ndarray:
    """Place of each label in a sorted vocabulary, (rows,); −1 for a label that is not in it."""
    known = np.array(vocabulary)
    if known.dtype.kind != labels.dtype.kind and "U" in (known.dtype.kind, labels.dtype.kind):
        return np.full(len(labels), -1)  # text and numbers have no order in common
    places = np.searchsorted(known, labels).clip(max=len(known) - 1)
    return np.where(known[places] == labels, places, -1)

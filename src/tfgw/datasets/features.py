"""Node features of a dataset, chosen by one word."""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets.graph_tables import GraphTables

Features = Literal["auto", "labels", "attributes", "degree", "degree_scalar", "constant"]

DEFAULT_MAX_DEGREE = 64


def node_features(tables: GraphTables, *, features: Features, max_degree: int = DEFAULT_MAX_DEGREE) -> Tensor:
    """The (N, d) feature matrix of all nodes, in torch's default floating-point type.

    ======================  ==========================================================================
    ``"attributes"``        the real-valued node attributes alone
    ``"labels"``            one-hot node labels
    ``"degree"``            one-hot degree; degrees from ``max_degree`` on share the last column
    ``"degree_scalar"``     the degree as one number (its squared differences swamp the structure term)
    ``"constant"``          the number 1
    ``"auto"``              the first of attributes, labels, degree that the dataset has
    ======================  ==========================================================================
    """
    if features not in get_args(Features):
        raise ValueError(f"features={features!r}: expected one of {', '.join(map(repr, get_args(Features)))}")
    kind = _automatic(tables) if features == "auto" else features
    if kind == "attributes":
        return _as_features(_present(tables.node_attributes, kind))
    if kind == "labels":
        return one_hot_columns(_present(tables.node_labels, kind))
    if kind == "degree":
        return _one_hot(torch.from_numpy(tables.degrees()).clamp(max=_checked_cap(max_degree)))
    if kind == "degree_scalar":
        return _as_features(tables.degrees()[:, None])
    return torch.ones(int(tables.node_counts.sum()), 1)


def one_hot_columns(labels: np.ndarray) -> Tensor:
    """One-hot encode each column of (rows, columns) ``labels`` over its own distinct values, side by side."""
    codes = [np.unique(column, return_inverse=True)[1] for column in labels.T]
    return torch.cat([_one_hot(torch.from_numpy(code)) for code in codes], dim=1)


def _automatic(tables: GraphTables) -> Features:
    if tables.node_attributes is not None:
        return "attributes"
    return "degree" if tables.node_labels is None else "labels"


def _present(table: np.ndarray | None, kind: str) -> np.ndarray:
    if table is None:
        raise ValueError(f"features={kind!r}: the graphs have no node {kind}")
    return table


def _checked_cap(max_degree: int) -> int:
    if max_degree < 1:
        raise ValueError(f"max_degree={max_degree}: must be at least 1")
    return max_degree


def _as_features(table: np.ndarray) -> Tensor:
    return torch.as_tensor(table, dtype=torch.get_default_dtype())


def _one_hot(codes: Tensor) -> Tensor:
    # Not torch's one_hot: it makes an int64 matrix first, eight times COLLAB's 24 million entries.
    matrix = torch.zeros(len(codes), int(codes.max()) + 1)
    return matrix.scatter_(1, codes[:, None], 1.0)

"""Weights of training graphs in the loss."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch

from tfgw.datasets import GraphDataset
from tfgw.train.batches import GRAPH_WEIGHT

ClassWeight = Literal["balanced"] | Mapping[Any, float]
"""``"balanced"`` gives all classes the same total weight; a mapping gives the weight of each label."""


def given_weights(
    sample_weight: Any, class_weight: ClassWeight | None, codes: np.ndarray, classes: tuple[Any, ...]
) -> np.ndarray | None:
    """Return the weight of each graph, multiplied by that of its label; ``None`` if there are none.

    ``classes[codes]`` are the labels of the graphs. ``"balanced"`` is left to :func:`training_weights`, because it
    counts only the graphs that are used for training.
    """
    weights = None if sample_weight is None else checked_weights(sample_weight, len(codes))
    if class_weight is None or class_weight == "balanced":
        return weights
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight: must be 'balanced' or a mapping of labels to weights, got {class_weight!r}")
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise ValueError(f"class_weight: no graph has the label {unknown[0]!r}")
    of_label = np.array([class_weight.get(label, 1.0) for label in classes], dtype=np.float64)[codes]
    return of_label if weights is None else of_label * weights


def training_weights(
    train: GraphDataset, sample_weight: np.ndarray | None, *, balanced_classes: bool
) -> np.ndarray | None:
    """Return the weight of each training graph; ``None`` if there are none.

    ``balanced_classes`` gives all classes the same total weight, by which the given weights are multiplied.
    """
    weights = None if sample_weight is None else checked_weights(sample_weight, len(train))
    if not balanced_classes:
        return weights
    if not train.classes or train.y is None:
        raise ValueError("balanced_classes: the training graphs have no classes")
    codes = train.y.numpy()
    counts = np.bincount(codes)
    of_class = (len(codes) / (np.count_nonzero(counts) * counts.clip(min=1)))[codes]
    return of_class if weights is None else of_class * weights


def checked_weights(weights: Any, count: int) -> np.ndarray:
    """Return the weights as an array; they must be non-negative, one per graph, and not all zero."""
    try:
        weights = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: expected numbers") from None
    if weights.shape != (count,):
        raise ValueError(f"sample_weight: expected one number for each of {count} graphs, got shape {weights.shape}")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        found = weights[wrong[0]]
        raise ValueError(f"sample_weight: graph {wrong[0]} has {found}, expected a non-negative number")
    if not weights.any():
        raise ValueError(
            "Sample weights must contain at least one non-zero number."
        )  # the wording of scikit-learn, which its checks expect
    return weights


def with_graph_weights(train: GraphDataset, weights: np.ndarray) -> GraphDataset:
    """Attach ``weights``, scaled to mean 1, to the training graphs; their losses are multiplied by them.

    Validation and scores do not use the weights.
    """
    weights = checked_weights(weights, len(train))
    if (weights == weights[0]).all():
        return train
    return train.compact().with_graph_values(GRAPH_WEIGHT, torch.from_numpy(weights / weights.mean()))

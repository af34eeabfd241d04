"""Targets of graphs: classes numbered from 0, or real values."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets.features import as_floats


class Targets(NamedTuple):
    """``classes[k]`` is the original label of class ``k``; empty for regression and for unlabelled graphs."""

    y: Tensor | None  # (G,) int64 classes, −1 for unknown ones; (G,) or (G, targets) real values, NaN for unknown ones
    classes: tuple[Any, ...]


def as_targets(values: Any) -> Targets:
    """Convert targets. Integers, booleans and strings are labels, numbered in sorted order; real values are kept.

    Masked values (:class:`numpy.ma.MaskedArray`) are unknown.
    """
    if values is None:
        return Targets(None, ())
    if isinstance(values, np.ma.MaskedArray):
        return _partly_known(values)
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return Targets(_real_targets(array), ())
    if array.dtype.kind not in "biuUS" or array.ndim != 1:
        raise ValueError(f"labels must be one integer or string per graph, found {array.dtype} of shape {array.shape}")
    classes, codes = np.unique(array, return_inverse=True)
    return Targets(torch.from_numpy(codes), tuple(classes.tolist()))


def _partly_known(values: np.ma.MaskedArray) -> Targets:
    is_known = ~np.ma.getmaskarray(values)
    if not is_known.any():
        return Targets(None, ())
    known = as_targets(values.data[is_known])
    if known.y is None or is_known.all():
        return known
    y = torch.full((len(values),), torch.nan if known.y.is_floating_point() else -1, dtype=known.y.dtype)
    y[torch.from_numpy(is_known)] = known.y
    return Targets(y, known.classes)


def _real_targets(array: np.ndarray) -> Tensor:
    if not np.isfinite(array).all():
        graph = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ValueError(f"graph {graph}: the target is not a finite number")
    single = array.ndim == 2 and array.shape[1] == 1
    return as_floats(array[:, 0] if single else array, "target of graph")

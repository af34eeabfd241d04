"""Regression targets: one or several values per graph."""

from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from torch import Tensor

from tfgw.train.graph_weights import checked_weights
from tfgw.train.target_scaler import TargetScaler


class ValueTargets(RegressorMixin):
    """Mixin for regressors, whose targets are scaled for training."""

    target_scaler_: TargetScaler
    _is_single: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _learn_targets(self, y: Any, sample_weight: Any) -> tuple[Tensor, np.ndarray | None]:
        """Check targets and weights. Return the targets as ``(num_graphs, num_targets)``."""
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if targets.ndim > 2:
            raise ValueError(f"y: expected one or several numbers per graph, got shape {targets.shape}")
        self._is_single = targets.ndim == 1
        weights = None if sample_weight is None else checked_weights(sample_weight, len(targets))
        return torch.tensor(targets.reshape(len(targets), -1)), weights

"""Graph regression by a kernel machine."""

import os
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import check_array, check_consistent_length

from tfgw.estimators.kernel_machine import KernelMachine
from tfgw.estimators.neural_estimator import Validation
from tfgw.train import Task, TrainedModel
from tfgw.train.graph_weights import checked_weights
from tfgw.train.target_scaler import TargetScaler


class TFGWKernelRegressor(RegressorMixin, KernelMachine):
    """Kernel ridge regression on Fused Gromov–Wasserstein distances to all training graphs.

    >>> model = TFGWKernelRegressor().fit(graphs, [0.3, 1.7, ...])
    >>> model.predict(other_graphs)

    Parameters, graphs and attributes are those of :class:`TFGWKernelClassifier`, but for classes and their weights.
    ``y`` holds one number per graph, or several.

    Attributes:
        target_scaler_: The :class:`tfgw.train.target_scaler.TargetScaler` of the targets.
        loo_score_: R² of the leave-one-out predictions.
    """

    target_scaler_: TargetScaler
    _is_single: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Validation | None = None) -> Self:
        """Train on the graphs ``X`` with targets ``y``, ``(num_graphs,)`` or ``(num_graphs, num_targets)``.

        ``sample_weight`` and ``validation`` are those of :meth:`TFGWKernelClassifier.fit`.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if targets.ndim > 2:
            raise ValueError(f"y: expected one or several numbers per graph, got shape {targets.shape}")
        self._is_single = targets.ndim == 1
        columns = targets.reshape(len(targets), -1)
        weights = None if sample_weight is None else checked_weights(sample_weight, len(columns))
        self.target_scaler_ = TargetScaler.fit(columns if weights is None else columns[weights > 0])
        training = self._train(
            X,
            torch.from_numpy(self.target_scaler_.transform(columns)),
            task="regression",
            channels=columns.shape[1],
            weights=weights,
        )
        error = training.left_out - training.known.reshape(training.left_out.shape)
        spread = training.known - training.known.mean(0)
        self.loo_score_ = 1 - float(
            error.square().sum() / spread.square().sum().clamp_min(torch.finfo(torch.float64).tiny)
        )
        if validation is not None:
            self.validation_score_ = self.score(*validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted values, in the shape of ``y``."""
        values = self.target_scaler_.inverse_transform(self._outputs(X).numpy())
        return values[:, 0] if self._is_single else values

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        return "regression", ()

    def _set_target(self, trained: TrainedModel, path: str | os.PathLike[str]) -> None:
        if trained.task != "regression" or trained.target_scaler is None:
            raise ValueError(f"{path}: the model predicts classes, not values")
        self.target_scaler_ = trained.target_scaler
        self._is_single = len(trained.target_scaler.mean) == 1

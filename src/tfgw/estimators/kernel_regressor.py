"""Graph regression with a kernel machine."""

import os
from typing import Any, Self, cast

import numpy as np
import torch
from sklearn.utils import check_consistent_length

from tfgw.estimators.kernel_machine import KernelMachine
from tfgw.estimators.neural_estimator import Validation
from tfgw.estimators.value_targets import ValueTargets
from tfgw.train import Task, TrainedModel
from tfgw.train.target_scaler import TargetScaler


class TFGWKernelRegressor(ValueTargets, KernelMachine):
    """Kernel ridge regression on Fused Gromov–Wasserstein distances to all training graphs.

    >>> model = TFGWKernelRegressor().fit(graphs, [0.3, 1.7, ...])
    >>> model.predict(other_graphs)

    Parameters, graphs and attributes are those of :class:`TFGWKernelClassifier`, except for classes and their weights.
    ``y`` contains one or several numbers per graph.

    Attributes:
        target_scaler_: The :class:`tfgw.train.target_scaler.TargetScaler` of the targets.
        loo_score_: R² of the leave-one-out predictions.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Validation | None = None) -> Self:
        """Train on the graphs ``X`` with targets ``y``, ``(num_graphs,)`` or ``(num_graphs, num_targets)``.

        ``sample_weight`` and ``validation`` are those of :meth:`TFGWKernelClassifier.fit`.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        columns, weights = self._learn_targets(y, sample_weight)
        training = self._train(
            X,
            columns,
            task="regression",
            channels=columns.shape[1],
            weights=weights,
        )
        self.target_scaler_ = cast(TargetScaler, training.target_scaler)
        error = training.left_out - training.known.reshape(training.left_out.shape)
        spread = training.known - training.known.mean(0)
        self.loo_score_ = 1 - float(
            error.square().sum() / spread.square().sum().clamp_min(torch.finfo(torch.float64).tiny)
        )
        if validation is not None:
            self.validation_score_ = self.score(*validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict values, in the shape of ``y``."""
        values = self.target_scaler_.inverse_transform(self._outputs(X).numpy())
        return values[:, 0] if self._is_single else values

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        return "regression", ()

    def _set_target(self, trained: TrainedModel, path: str | os.PathLike[str]) -> None:
        if trained.task != "regression" or trained.target_scaler is None:
            raise ValueError(f"{path}: the model predicts classes, not values")
        self.target_scaler_ = trained.target_scaler
        self._is_single = len(trained.target_scaler.mean) == 1

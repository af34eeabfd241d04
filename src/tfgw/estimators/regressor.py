"""Graph regression."""

import os
from typing import Any, Self, cast

import numpy as np
import torch
from sklearn.utils import check_array, check_consistent_length
from torch import Tensor

from tfgw.estimators.neural_estimator import Validation
from tfgw.estimators.template_network import TemplateNetwork
from tfgw.estimators.value_targets import ValueTargets
from tfgw.train import Task, TrainedModel
from tfgw.train.target_scaler import TargetScaler


class TFGWRegressor(ValueTargets, TemplateNetwork):
    """Template based graph neural network for regression, trained by ``fit``.

    >>> model = TFGWRegressor(num_templates=8, epochs=100, random_state=0).fit(graphs, [0.3, 1.7, ...])
    >>> model.predict(other_graphs)

    Parameters, graphs and attributes are those of :class:`TFGWClassifier`, except ``classes_``. ``y`` contains one or
    several numbers per graph. Targets are standardised internally. For small datasets, see also
    :class:`TFGWKernelRegressor`.

    Attributes:
        target_scaler_: The :class:`tfgw.train.target_scaler.TargetScaler` of the targets.
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, validation: Validation | None = None
    ) -> "TFGWRegressor":
        """Train on the graphs ``X`` with targets ``y``, ``(num_graphs,)`` or ``(num_graphs, num_targets)``.

        ``sample_weight`` has one number of at least 0 for each graph, by which its loss is multiplied; only their
        proportions count, and graphs of weight 0 are left out.

        ``validation``, a pair of graphs and targets, selects the best epoch as in :meth:`TFGWClassifier.fit`, by the
        squared error of the standardised targets.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        self._check_validation(validation)
        columns, weights = self._learn_targets(y, sample_weight)
        training = self._train(
            X,
            columns,
            task="regression",
            weights=weights,
            validation=None if validation is None else (validation[0], _columns(validation[1])),
        )
        self.target_scaler_ = cast(TargetScaler, training.target_scaler)
        return self

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        return "regression", ()

    @classmethod
    def _from_trained(cls, trained: TrainedModel, path: str | os.PathLike[str]) -> Self:
        if trained.task != "regression":
            raise ValueError(f"{path}: the model predicts classes, not values")
        estimator = super()._from_trained(trained, path)
        values = trained.members[0].config.out_channels
        unscaled = TargetScaler(mean=(0.0,) * values, scale=(1.0,) * values)  # for files of an earlier version
        estimator.target_scaler_ = trained.target_scaler or unscaled
        estimator._is_single = values == 1
        return estimator

    def predict(self, X: Any) -> np.ndarray:
        """Predict the values of each graph, in the shape of ``y``."""
        scaled = self._outputs(X).numpy()
        values = self.target_scaler_.inverse_transform(scaled)
        return values[:, 0] if self._is_single else values


def _columns(y: Any) -> Tensor:
    targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return torch.tensor(targets.reshape(len(targets), -1))

"""Base class of estimators that train a neural network."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tfgw.datasets import GraphDataset, random_split
from tfgw.estimators.base import GraphEstimator
from tfgw.train import EpochRecord, FitResult, Parts, Task, TrainConfig, Training, outputs, train_model
from tfgw.train.config import Precision, config_from
from tfgw.train.recipes import Recipe, complete, recipe_of

Validation = tuple[Any, Any]
"""Graphs and targets, as in ``fit``."""


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralEstimator(GraphEstimator):
    """Trains the network of ``_new_network``; :class:`TFGWClassifier` documents parameters and attributes."""

    standardize: bool | None = None
    recipe: str | Recipe = "default"
    n_estimators: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    label_smoothing: float | None = None
    validation_fraction: float = 0.0
    patience: int | None = TrainConfig.patience
    precision: Precision = TrainConfig.precision
    accelerator: str = TrainConfig.accelerator
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    model_: nn.Module = field(init=False)
    history_: list[EpochRecord] = field(init=False)
    num_parameters_: int = field(init=False)
    validation_score_: float = field(init=False)

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> nn.Module:
        """Build the untrained network for preprocessed graphs; PyTorch is seeded before this call.

        ``settings`` are the parameters of the estimator, completed by its recipe.
        """
        raise NotImplementedError

    @property
    def n_iter_(self) -> int:
        """Number of epochs."""
        check_is_fitted(self, "history_")
        return len(self.history_)

    def _outputs(self, X: Any) -> Tensor:
        """Return the outputs of the network, ``(num_graphs, out_channels)``."""
        dataset = self._read_input(X)
        with torch.inference_mode():
            return outputs(self.model_, dataset).double()

    def _train(
        self,
        X: Any,
        y: Tensor,
        *,
        task: Task,
        classes: tuple[Any, ...] = (),
        weights: np.ndarray | None = None,
        balanced_classes: bool = False,
        validation: tuple[Any, Tensor] | None = None,
    ) -> Training:
        graphs = self._learn_input(X)
        if weights is not None:  # drop graphs of weight 0, so that templates and statistics do not depend on them
            counted = np.flatnonzero(weights)
            graphs, y, weights = [graphs[number] for number in counted], y[counted], weights[counted]
        seed = self._seed()
        dataset = self._stack(graphs, y, classes=classes)
        parts = Parts.of(dataset, random_split(dataset, val=self.validation_fraction, test=0.0, seed=seed))
        settings = complete(self.get_params(deep=False), self._recipe(), num_graphs=len(parts.train), task=task)
        config = config_from(TrainConfig, settings, task=task, seed=seed)
        if validation is not None:
            parts = parts._replace(validation=self._read_validation(*validation))
        self.preprocessing_ = self._learn_preprocessing(parts.train)
        training = train_model(
            parts,
            partial(self._new_network, settings=settings),
            config,
            preprocessing=self.preprocessing_,
            n_estimators=settings["n_estimators"],
            sample_weight=None if weights is None else weights[parts.train.positions],
            balanced_classes=balanced_classes,
            progress_bar=bool(self.verbose),
        )
        self.model_ = training.model.cpu().eval()
        self.num_parameters_ = sum(parameter.numel() for parameter in self.model_.parameters())
        self._store_result(training.result)
        return training

    def _recipe(self) -> Recipe:
        return recipe_of(self.recipe)

    def _read_validation(self, X: Any, y: Tensor) -> GraphDataset:
        try:
            return self._read_dataset(X, y)
        except ValueError as error:
            raise ValueError(f"validation: {error}") from None

    def _store_result(self, result: FitResult) -> None:
        self.history_ = result.records
        if result.kept is not None:
            self.validation_score_ = result.kept.validation_score
        elif hasattr(self, "validation_score_"):
            del self.validation_score_  # from an earlier fit

    def _check_validation(self, validation: Validation | None) -> None:
        if validation is None:
            return
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise ValueError("validation: expected a pair (graphs, targets)")
        if self.validation_fraction:
            raise ValueError(f"validation: cannot be combined with validation_fraction={self.validation_fraction}")
        check_consistent_length(*validation)

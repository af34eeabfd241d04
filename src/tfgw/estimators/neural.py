"""A network as an estimator: what everything that is trained by epochs shares, whichever the network."""

from typing import Any

import torch
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tfgw.datasets import GraphDataset, random_split
from tfgw.estimators.base import GraphEstimator
from tfgw.train import EpochRecord, Task, TrainConfig, fit, outputs
from tfgw.train.config import Precision
from tfgw.train.loop import FitResult

Validation = tuple[Any, Any]
"""Graphs and their targets, as ``fit`` takes them."""


class NeuralEstimator(GraphEstimator):
    """Trains the network that ``_new_network`` makes; :class:`TFGWClassifier` documents parameters and attributes."""

    standardize: bool | None
    epochs: int
    batch_size: int
    lr: float
    validation_fraction: float
    patience: int | None
    precision: Precision
    accelerator: str
    verbose: bool

    model_: nn.Module
    history_: list[EpochRecord]
    num_parameters_: int
    validation_score_: float

    def _new_network(self, train: GraphDataset, out_channels: int, seed: int) -> nn.Module:
        """The untrained network for graphs as they are after preprocessing; PyTorch is seeded when this is called."""
        raise NotImplementedError

    @property
    def n_iter_(self) -> int:
        """Epochs that were trained."""
        check_is_fitted(self, "history_")
        return len(self.history_)

    def _outputs(self, X: Any) -> Tensor:
        """What the network gives, ``(num_graphs, out_channels)``."""
        dataset = self._read_input(X)
        return outputs(self.model_, dataset).double()

    def _train(
        self,
        X: Any,
        y: Tensor,
        *,
        task: Task,
        out_channels: int,
        classes: tuple[Any, ...] = (),
        validation: tuple[Any, Tensor] | None = None,
    ) -> None:
        graphs = self._learn_input(X)
        seed = self._seed()
        config = self._train_config(task, seed)
        dataset = self._stack(graphs, y, classes=classes)
        split = random_split(dataset, val=self.validation_fraction, test=0.0, seed=seed)
        train = dataset[split.train]
        self.preprocessing_ = self._learn_preprocessing(train)
        held_out = self.preprocessing_(dataset[split.val]) if len(split.val) else None
        if validation is not None:
            held_out = self._read_validation(*validation)
        train = self.preprocessing_(train)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model_ = self._new_network(train, out_channels, seed)
        self.num_parameters_ = sum(parameter.numel() for parameter in self.model_.parameters())
        self._note(self._fit_network(train, held_out, config))

    def _fit_network(self, train: GraphDataset, validation: GraphDataset | None, config: TrainConfig) -> FitResult:
        return fit(self.model_, train, validation, config=config, progress_bar=bool(self.verbose))

    def _read_validation(self, X: Any, y: Tensor) -> GraphDataset:
        try:
            return self._read_input(X, y)
        except ValueError as error:
            raise ValueError(f"validation: {error}") from None

    def _note(self, result: FitResult) -> None:
        self.model_.cpu().eval()
        self.history_ = result.records
        if result.kept is not None:
            self.validation_score_ = result.kept.validation_score
        elif hasattr(self, "validation_score_"):
            del self.validation_score_  # of an earlier fit

    def _train_config(self, task: Task, seed: int) -> TrainConfig:
        return TrainConfig(
            task=task,
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            patience=self.patience,
            precision=self.precision,
            accelerator=self.accelerator,
            seed=seed,
        )

    def _check_validation(self, validation: Validation | None) -> None:
        if validation is None:
            return
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise ValueError("validation: expected a pair (graphs, targets)")
        if self.validation_fraction:
            raise ValueError(f"validation: given, but validation_fraction={self.validation_fraction} sets graphs aside")
        check_consistent_length(*validation)

"""Model files of estimators."""

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tfgw.datasets import NodeEncoding
from tfgw.nn import Ensemble, KernelModel, TFGWModel
from tfgw.train import Preprocessing, Task, TrainedModel, save_model


class SavedModel:
    """Mixin for fitted estimators that have a model file."""

    model_: TFGWModel | Ensemble | KernelModel
    preprocessing_: Preprocessing
    encoding_: NodeEncoding | None
    n_features_in_: int

    @property
    def trained_(self) -> TrainedModel:
        """The model with its preprocessing, as in the model file. The model of a regressor predicts scaled targets."""
        check_is_fitted(self, "model_")
        task, classes = self._target()
        return TrainedModel(
            model=self.model_,
            task=task,
            classes=classes,
            preprocessing=self.preprocessing_,
            source={"n_features_in": self.n_features_in_},
            encoding=self.encoding_,
            target_scaler=getattr(self, "target_scaler_", None),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to a file, which :func:`tfgw.load_model` and ``tfgw predict`` can read.

        The command line can only process graphs in files if ``encoding_`` is known. The file of a kernel machine
        contains its training graphs.
        """
        save_model(self.trained_, path)

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        """The task, and the labels of the classes."""
        raise NotImplementedError

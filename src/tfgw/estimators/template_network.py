"""The paper's model as an estimator: what classifier and regressor share."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.estimators.neural_estimator import NeuralEstimator
from tfgw.estimators.template_parameters import TemplateParameters
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Task, TrainConfig, TrainedModel, build_tfgw, embeddings, num_outputs
from tfgw.train.config import config_from


@dataclass(kw_only=True, eq=False, repr=False)
class TemplateNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TemplateParameters, NeuralEstimator):
    """Stores the parameters that :class:`TFGWClassifier` documents, trains, and gives outputs and distances."""

    num_layers: int | None = None
    width: int | None = None
    dropout: float | None = None
    alpha: float | None = TFGWConfig.alpha
    learn_templates: bool = TFGWConfig.learn_templates
    learn_weights: bool = TFGWConfig.learn_weights
    template_lr: float | None = TrainConfig.template_lr
    stratified: bool = TrainConfig.stratified

    model_: TFGWModel = field(init=False)

    @property
    def templates_(self) -> ot.Templates:
        """The learned templates; their features are those that the encoder gives."""
        check_is_fitted(self, "model_")
        pool = self.model_.pool
        return ot.Templates(
            features=pool.template_features.detach(),
            structure=pool.template_structure.detach(),
            weights=pool.template_weights.detach(),
        )

    @property
    def trained_(self) -> TrainedModel:
        """The model with its preprocessing, as its file has it; a regressor's predicts standardised targets."""
        check_is_fitted(self, "model_")
        task, classes = self._target()
        return TrainedModel(
            model=self.model_,
            task=task,
            classes=classes,
            preprocessing=self.preprocessing_,
            source={"n_features_in": self.n_features_in_},
            encoding=self.encoding_,
        )

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        """What is predicted, and the labels of classes."""
        raise NotImplementedError

    @property
    def alpha_(self) -> float:
        """Trade-off between features (0) and structure (1) of the trained model."""
        check_is_fitted(self, "model_")
        return float(self.model_.pool.alpha.detach().mean())

    def transform(self, X: Any) -> np.ndarray:
        """Distances of the graphs to the learned templates, ``(num_graphs, num_templates)``."""
        dataset = self._read_input(X)
        with torch.inference_mode():
            return embeddings(self.model_, dataset).double().numpy()

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> TFGWModel:
        architecture = config_from(
            TFGWConfig,
            settings,
            in_channels=train.num_node_features,
            out_channels=num_outputs(train, config.task),
            template_nodes=self._template_nodes(train),
            start_kinds=tuple(self.start_kinds),
        )
        model = build_tfgw(train, architecture, config)
        model.pool.num_threads = self.num_threads
        return model

    @property
    def _n_features_out(self) -> int:
        return self.model_.pool.num_templates

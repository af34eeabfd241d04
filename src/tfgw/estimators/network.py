"""The paper's model as an estimator: what classifier and regressor share."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.estimators.fixed import Head, as_distances, is_fixed
from tfgw.estimators.graphs import median_nodes
from tfgw.estimators.neural import NeuralEstimator
from tfgw.nn import TFGWConfig, TFGWModel, sample_templates
from tfgw.nn.tfgw_pooling import Structure
from tfgw.train import FitResult, Task, TrainConfig, embeddings, fit
from tfgw.train.run import DTYPES


class TemplateNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeuralEstimator):
    """Stores the parameters that :class:`TFGWClassifier` documents, trains, and gives outputs and distances."""

    model_: TFGWModel

    def __init__(
        self,
        *,
        num_templates: int = 8,
        template_nodes: int | None = None,
        structure: Structure = "adjacency",
        directed: bool = False,
        num_layers: int = 2,
        width: int = 16,
        dropout: float = 0.0,
        alpha: float | None = None,
        learn_templates: bool = True,
        learn_weights: bool = True,
        n_starts: int = 1,
        start_kinds: Sequence[str] = ot.START_KINDS,
        canonical_order: bool = True,
        standardize: bool | None = None,
        epochs: int = 500,
        batch_size: int = 128,
        lr: float = 0.01,
        template_lr: float | None = None,
        stratified: bool = False,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        precision: Literal["float64", "float32", "bf16"] = "float64",
        accelerator: str = "auto",
        num_threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.num_templates = num_templates
        self.template_nodes = template_nodes
        self.structure = structure
        self.directed = directed
        self.num_layers = num_layers
        self.width = width
        self.dropout = dropout
        self.alpha = alpha
        self.learn_templates = learn_templates
        self.learn_weights = learn_weights
        self.n_starts = n_starts
        self.start_kinds = start_kinds
        self.canonical_order = canonical_order
        self.standardize = standardize
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.template_lr = template_lr
        self.stratified = stratified
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.precision = precision
        self.accelerator = accelerator
        self.num_threads = num_threads
        self.random_state = random_state
        self.verbose = verbose

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
    def alpha_(self) -> float:
        """Trade-off between features (0) and structure (1) of the trained model."""
        check_is_fitted(self, "model_")
        return float(self.model_.pool.alpha.detach().mean())

    def transform(self, X: Any) -> np.ndarray:
        """Distances of the graphs to the learned templates, ``(num_graphs, num_templates)``."""
        dataset = self._read_input(X)
        return embeddings(self.model_, dataset).double().numpy()

    def _train_config(self, task: Task, seed: int) -> TrainConfig:
        config = super()._train_config(task, seed)
        return replace(config, template_lr=self.template_lr, stratified=self.stratified)

    def _fit_network(self, train: GraphDataset, validation: GraphDataset | None, config: TrainConfig) -> FitResult:
        if not is_fixed(self.model_):
            return super()._fit_network(train, validation, config)
        train = as_distances(self.model_, train)
        validation = None if validation is None else as_distances(self.model_, validation)
        return fit(Head(self.model_.head), train, validation, config=config, progress_bar=bool(self.verbose))

    def _new_network(self, train: GraphDataset, out_channels: int, seed: int) -> TFGWModel:
        config = TFGWConfig(
            in_channels=self.preprocessing_.in_channels,
            out_channels=out_channels,
            num_templates=self.num_templates,
            template_nodes=median_nodes(train) if self.template_nodes is None else self.template_nodes,
            num_layers=self.num_layers,
            width=self.width,
            dropout=self.dropout,
            structure=self.structure,
            directed=self.directed,
            alpha=self.alpha,
            learn_templates=self.learn_templates,
            learn_weights=self.learn_weights,
            n_starts=self.n_starts,
            start_kinds=tuple(self.start_kinds),
        )
        dtype = DTYPES[self.precision]
        model = TFGWModel(config).to(dtype)
        model.pool.num_threads = self.num_threads
        templates = sample_templates(
            [_cast(graph, dtype) for graph in train],
            config.num_templates,
            config.template_nodes,
            structure=config.structure,
            directed=config.directed,
            encoder=model.encoder,
            seed=seed,
        )
        model.pool.set_templates(cast(Tensor, templates.structure), templates.features, templates.weights)
        return model

    @property
    def _n_features_out(self) -> int:
        return self.model_.pool.num_templates


def _cast(graph: Any, dtype: torch.dtype) -> Any:
    graph.x = graph.x.to(dtype)
    return graph

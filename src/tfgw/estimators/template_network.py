"""Base class of :class:`TFGWClassifier` and :class:`TFGWRegressor`."""

import os
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, cast

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.estimators.neural_estimator import NeuralEstimator
from tfgw.estimators.saved_model import SavedModel
from tfgw.estimators.template_parameters import TemplateParameters
from tfgw.nn import Ensemble, TFGWConfig, TFGWModel, TFGWPooling
from tfgw.nn.ensemble import members_of
from tfgw.train import TrainConfig, TrainedModel, build_tfgw, embeddings, load_model, num_outputs
from tfgw.train.config import config_from
from tfgw.train.recipes import Recipe
from tfgw.train.template_size import default_template_nodes, number_of_templates

SHOWN_TEMPLATES = 8
"""Maximum number of templates shown in a notebook."""


@dataclass(kw_only=True, eq=False, repr=False)
class TemplateNetwork(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TemplateParameters, SavedModel, NeuralEstimator
):
    """An estimator with a TFGW network; :class:`TFGWClassifier` documents its parameters."""

    num_templates: int | None = None  # type: ignore[assignment]
    num_layers: int | None = None
    width: int | None = None
    dropout: float | None = None
    alpha: float | None = TFGWConfig.alpha
    learn_templates: bool = TFGWConfig.learn_templates
    learn_weights: bool = TFGWConfig.learn_weights
    template_lr: float | None = TrainConfig.template_lr
    stratified: bool = TrainConfig.stratified

    model_: TFGWModel | Ensemble = field(init=False)

    @property
    def templates_(self) -> ot.Templates:
        """The learned templates of all networks, concatenated. Their features are encoded."""
        pools = self._pools()
        return ot.Templates(
            features=torch.cat([pool.template_features.detach() for pool in pools]),
            structure=torch.cat([pool.template_structure.detach() for pool in pools]),
            weights=torch.cat([pool.template_weights.detach() for pool in pools]),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a fitted estimator from a file of :meth:`save` or ``tfgw train``.

        Architecture parameters are those of the model; training parameters have their defaults. ``history_`` is empty.
        """
        return cls._from_trained(load_model(path), path)

    @classmethod
    def _from_trained(cls, trained: TrainedModel, path: str | os.PathLike[str]) -> Self:
        """Create the estimator of a model that was loaded from ``path``."""
        names = {field.name for field in fields(cls) if field.init}
        architecture = asdict(trained.members[0].config)
        known = {name: value for name, value in architecture.items() if name in names}
        ordered = trained.preprocessing.canonical_order
        estimator = cls(**known, n_estimators=len(trained.members), canonical_order=ordered)
        estimator.model_ = cast(TFGWModel | Ensemble, trained.model)
        estimator.preprocessing_ = trained.preprocessing
        estimator.encoding_ = trained.encoding
        estimator.n_features_in_ = trained.source.get("n_features_in", trained.preprocessing.in_channels)
        estimator.num_parameters_ = sum(parameter.numel() for parameter in trained.model.parameters())
        estimator.history_ = []
        return estimator

    @property
    def alpha_(self) -> float:
        """Trade-off between features (0) and structure (1) of the trained model, averaged over its networks."""
        return float(np.mean([float(pool.alpha.detach().mean()) for pool in self._pools()]))

    def _html_repr(self) -> str:
        """Return the notebook display: scikit-learn's diagram and, once fitted, the templates."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "model_"):
            return diagram
        try:
            from tfgw.plot import templates
            from tfgw.plot.svg_text import svg_element

            drawn = templates(self, numbers=range(min(SHOWN_TEMPLATES, self._n_features_out)))
        except ImportError:  # matplotlib is not installed
            return diagram
        title = f"Templates of {type(self).__name__}"
        name = f"templates-{id(self)}"
        return f'{diagram}<div style="overflow-x:auto">{svg_element(drawn, name=name, title=title)}</div>'

    def transform(self, X: Any) -> np.ndarray:
        """Distances of the graphs to the learned templates, ``(num_graphs, n_estimators * num_templates)``."""
        dataset = self._read_input(X)
        with torch.inference_mode():
            return embeddings(self.model_, dataset).double().numpy()

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        overridden = [field.name for field in fields(self) if field.name in recipe and field.default is not None]
        if overridden:
            raise ValueError(f"recipe: {overridden[0]!r} is a parameter of {type(self).__name__}; set it there")
        return recipe

    def _new_network(self, train: GraphDataset, config: TrainConfig, settings: dict[str, Any]) -> TFGWModel:
        nodes = settings.get("template_nodes")
        architecture = config_from(
            TFGWConfig,
            settings,
            in_channels=train.num_node_features,
            out_channels=num_outputs(train, config.task),
            num_templates=number_of_templates(settings, train.num_classes),
            template_nodes=default_template_nodes(train) if nodes is None else nodes,
            start_kinds=tuple(self.start_kinds),
        )
        return build_tfgw(train, config, architecture=architecture, num_threads=self.num_threads)

    @property
    def _n_features_out(self) -> int:
        return sum(pool.num_templates for pool in self._pools())

    def _pools(self) -> list[TFGWPooling]:
        check_is_fitted(self, "model_")
        return [member.pool for member in members_of(self.model_)]

"""Graph embeddings without training."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from torch import Tensor

from tfgw import ot
from tfgw.estimators.base import GraphEstimator
from tfgw.estimators.template_parameters import TemplateParameters
from tfgw.nn import TFGWConfig, sample_templates
from tfgw.ot.starts import start_bits
from tfgw.train.batches import Batch, GraphStore
from tfgw.train.evaluate import BATCH_SIZE
from tfgw.train.template_size import default_template_nodes


@dataclass(kw_only=True, eq=False, repr=False)
class TFGWTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TemplateParameters, GraphEstimator):
    """Fused Gromov–Wasserstein distances of graphs to templates that ``fit`` samples from the data.

    >>> make_pipeline(TFGWTransformer(num_templates=16, random_state=0), SVC()).fit(graphs, labels)

    Nothing is trained. For distances to learned templates, use ``transform`` of :class:`TFGWClassifier` or
    :class:`TFGWRegressor`. Graphs may be in any form that :func:`tfgw.estimators.as_graphs` accepts.

    Args:
        num_templates: Number of templates.
        template_nodes: Nodes per template (default: the median size of the graphs, at most 64).
        structure: Structure matrix of a graph, as in :class:`TFGWClassifier`.
        directed: Whether the structures of graphs and templates may be asymmetric.
        alpha: Trade-off between features (0) and structure (1).
        n_starts: Number of solver starts per pair.
        start_kinds: Kinds of starts, as in :class:`TFGWClassifier`.
        canonical_order: Whether isomorphic graphs get the same distances.
        standardize: Whether to scale features to mean 0 and variance 1 (default: unless all are 0 or 1).
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
        random_state: Random seed for template sampling.

    Attributes:
        templates_: The sampled templates; their features are standardised if those of the graphs are.
        n_features_in_: Number of features per node; 0 for graphs without features.
        preprocessing_: Preprocessing of graphs before they are compared.
    """

    alpha: float = TFGWConfig.alpha_init
    standardize: bool | None = None
    random_state: int | np.random.RandomState | None = None

    templates_: ot.Templates = field(init=False)

    def fit(self, X: Any, y: Any = None) -> "TFGWTransformer":
        """Sample the templates from the graphs ``X``.

        If ``y`` has at most ``num_templates`` distinct labels, the templates are distributed evenly over the classes.
        Any other ``y`` is ignored.
        """
        self._check_parameters()
        dataset = self._stack(self._learn_input(X), self._labels(X, y))
        self.preprocessing_ = self._learn_preprocessing(dataset)
        self.templates_ = sample_templates(
            list(self.preprocessing_(dataset)),
            self.num_templates,
            default_template_nodes(dataset) if self.template_nodes is None else self.template_nodes,
            structure=self.structure,
            directed=self.directed,
            seed=self._seed(),
        )
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Distances of the graphs to the templates, ``(num_graphs, num_templates)``."""
        store = GraphStore(self._read_input(X), dtype=torch.float64)
        return np.concatenate([self._distances(batch).numpy() for batch in store.in_order(BATCH_SIZE)])

    def _distances(self, batch: Batch) -> Tensor:
        inputs = dict(batch.inputs)
        if "structure" in inputs:
            inputs |= {"edge_index": None, "edge_weight": None}
        return ot.fgw(
            ot.GraphBatch(**inputs),
            self.templates_,
            self.alpha,
            n_starts=self.n_starts,
            start_kinds=self.start_kinds,
            plans=None,
            num_threads=self.num_threads,
        ).distances

    def _labels(self, X: Any, y: Any) -> Tensor | None:
        if y is None:
            return None
        check_consistent_length(X, y)
        if type_of_target(y) not in ("binary", "multiclass"):
            return None
        classes, codes = np.unique(column_or_1d(y), return_inverse=True)
        return torch.from_numpy(codes) if len(classes) <= self.num_templates else None

    def _check_parameters(self) -> None:
        for name in ("num_templates", "template_nodes", "n_starts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: must be at least 1, got {value}")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha: must be in [0, 1], got {self.alpha}")
        start_bits(self.start_kinds)

    @property
    def _n_features_out(self) -> int:
        return self.templates_.features.shape[0]

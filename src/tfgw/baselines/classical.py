"""Base class of baselines that are not trained in epochs."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from tfgw.estimators.base import GraphEstimator
from tfgw.estimators.graphs import check_features
from tfgw.estimators.neural_estimator import Validation


@dataclass(kw_only=True, eq=False, repr=False)
class ClassicalBaseline(ClassifierMixin, GraphEstimator):
    """A classifier on the features and edges of undirected graphs; subclasses implement ``_fit`` and ``_predict``.

    Args:
        random_state: Random seed.
    """

    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any, *, validation: Validation | None = None) -> Self:
        """Train on the graphs ``X`` with labels ``y``.

        ``validation``, a pair of graphs and labels, is not used for training; ``validation_score_`` is the accuracy on
        it.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        check_classification_targets(y)
        graphs = self._learn_input(X)
        labels = column_or_1d(y, warn=True)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y: at least two classes are required, but all labels are {self.classes_[0]!r}")
        self._fit(graphs, labels)
        if validation is not None:
            self.validation_score_ = self.score(*validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each graph."""
        return self._predict(self._read_graphs(X))

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        raise NotImplementedError

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        raise NotImplementedError

    def _read_graphs(self, X: Any) -> list[Data]:
        check_is_fitted(self)
        graphs = self._as_graphs(X)
        check_features(graphs, self.n_features_in_)
        return graphs

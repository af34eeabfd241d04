"""A random forest on counts, as a simple baseline."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from torch_geometric.data import Data

from tfgw.baselines.classical import ClassicalBaseline
from tfgw.baselines.summaries import summaries


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForest(ClassicalBaseline):
    """scikit-learn's random forest on the number of nodes, the number of edges and the summed node features.

    Sums of one-hot labels or degrees are counts.

    Args:
        n_estimators: Number of trees.
        min_samples_leaf: Minimum number of graphs in a leaf.
        max_features: Share or number of features considered for each split.
        class_weight: ``"balanced"`` weights classes inversely to their frequency.
        random_state: Random seed for the forest.

    Attributes:
        classes_: Class labels.
        forest_: The fitted forest.
    """

    n_estimators: int = 200
    min_samples_leaf: int = 1
    max_features: float | Literal["sqrt", "log2"] = "sqrt"
    class_weight: Literal["balanced"] | None = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, ``(num_graphs, num_classes)``."""
        return self.forest_.predict_proba(summaries(self._read_graphs(X)).numpy())

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        self.forest_ = RandomForestClassifier(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            class_weight=self.class_weight,
            random_state=self._generator(),
        ).fit(summaries(graphs).numpy(), labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.forest_.predict(summaries(graphs).numpy())

"""A random forest on counts: what any method should beat before its complexity is worth it."""

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

    One-hot labels or degrees sum up to counts.

    Args:
        n_estimators: Trees.
        min_samples_leaf: Graphs in a leaf, at least.
        max_features: Share of the features, or how many, that each split may choose from.
        class_weight: ``"balanced"`` weighs classes by their rarity.
        random_state: Seed of the forest.

    Attributes:
        classes_: The labels.
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

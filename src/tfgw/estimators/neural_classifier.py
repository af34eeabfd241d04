"""Base class of neural classifiers: encoding of labels, and predictions from scores."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from torch import Tensor

from tfgw.estimators.neural_estimator import NeuralEstimator, Validation
from tfgw.train import Task, probabilities
from tfgw.train.graph_weights import ClassWeight, given_weights


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralClassifier(ClassifierMixin, NeuralEstimator):
    """A neural classifier: single-label or, with a 0/1 matrix as ``y``, multi-label."""

    class_weight: ClassWeight | None = None

    classes_: np.ndarray = field(init=False)
    _task: Task = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Validation | None = None) -> Self:
        """Train on the graphs ``X`` with labels ``y``, ``(num_graphs,)`` or 0/1 in ``(num_graphs, num_labels)``.

        ``sample_weight`` contains a non-negative weight for each graph, by which its loss is multiplied. Only the
        ratios of weights matter, and graphs of weight 0 are left out. It is multiplied with the class weights. Scores
        and validation do not use it.

        ``validation``, a pair of graphs and labels, selects the best epoch. Every five epochs, the weights are kept if
        neither the validation nor the training accuracy is below that of the best epoch so far.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self._check_validation(validation)
        if type_of_target(y, input_name="y") == "multilabel-indicator":
            self._task = "multilabel"
            codes = _indicators(y)
            self.classes_ = np.arange(codes.shape[1])
            classes: tuple[Any, ...] = ()
        else:
            self._task = "classification"
            self.classes_, inverse = np.unique(column_or_1d(y, warn=True), return_inverse=True)
            codes, classes = torch.from_numpy(inverse), tuple(self.classes_.tolist())
        if self.class_weight is not None and self._task != "classification":
            raise ValueError("class_weight: requires one class per graph, but y is a multi-label matrix")
        self._train(
            X,
            codes,
            weights=given_weights(sample_weight, self.class_weight, codes.numpy(), classes),
            balanced_classes=self.class_weight == "balanced",
            task=self._task,
            classes=classes,
            validation=None if validation is None else (validation[0], self._encoded(validation[1])),
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each graph, or a 0/1 matrix."""
        scores = self._outputs(X)
        if self._task == "multilabel":
            return np.asarray((scores > 0).long())
        return self.classes_[scores.numpy().argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class (rows sum to 1), or of each label, ``(num_graphs, num_classes)``."""
        scores = self._outputs(X)
        return np.asarray(probabilities(self._task, scores))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores before the softmax, ``(num_graphs, num_classes)``; for two classes, second minus first score."""
        scores = self._outputs(X).numpy()
        is_binary = self._task == "classification" and len(self.classes_) == 2
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    def _encoded(self, y: Any) -> Tensor:
        """Encode labels of validation graphs by ``classes_``."""
        if self._task == "multilabel":
            return _indicators(y)
        labels = column_or_1d(y, warn=True)
        unknown = sorted(set(labels.tolist()) - set(self.classes_.tolist()))
        if unknown:
            raise ValueError(f"validation: label {unknown[0]!r} does not occur among the training graphs")
        return torch.from_numpy(np.searchsorted(self.classes_, labels))


def _indicators(y: Any) -> Tensor:
    labels = check_array(y, accept_sparse=True, dtype=np.float64, input_name="y")
    return torch.from_numpy(labels.toarray() if hasattr(labels, "toarray") else np.array(labels))

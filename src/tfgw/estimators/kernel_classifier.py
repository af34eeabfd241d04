"""Graph classification with a kernel machine."""

import os
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from tfgw.estimators.kernel_machine import KernelMachine
from tfgw.estimators.neural_estimator import Validation
from tfgw.train import Task, TrainedModel, probabilities
from tfgw.train.graph_weights import ClassWeight, given_weights


@dataclass(kw_only=True, eq=False, repr=False)
class TFGWKernelClassifier(ClassifierMixin, KernelMachine):
    """Kernel classifier based on Fused Gromov–Wasserstein distances to all training graphs.

    >>> model = TFGWKernelClassifier().fit(graphs, ["ring", "star", ...])
    >>> model.predict_proba(other_graphs), model.loo_score_

    Node features include the neighbourhood of the node: labels are refined by the Weisfeiler–Lehman algorithm, and
    real-valued features are averaged over neighbours. For each level of refinement and each α, a kernel ridge
    regression on exp(−γ FGW) learns the classes; others compare the degrees of nodes, and cycles. γ and the penalty λ
    minimise the leave-one-out error on the training graphs, which has a closed form. Class scores are a weighted mean
    over all distances: weights are proportional to the square of the share of the targets' variance that a distance
    explains. For more than 2,000 graphs, one regression on the sum of all distances is used instead if its
    leave-one-out error is clearly smaller (``combine``). There are no epochs, and the result is deterministic.

    On small and medium datasets, this is the most accurate model of the package (docs/recipe.md). A network
    (:class:`TFGWClassifier`) predicts faster, has a few interpretable templates, and can be trained on any number of
    graphs. ``fit`` solves one problem per pair of graphs and distance; for each graph, ``predict`` solves one problem
    per training graph and distance.

    Args:
        levels: Levels of refinement. Each level is a number of refinement steps. If ``None``, 0 to 3; labels are also
            compared at levels 4 to 7 without structure, as long as these explain more than each of the levels 0 to 3.
        alphas: Trade-offs between features (0) and structure (1). If ``None``, 0 and 0.5; 0 alone if comparing the
            structures of all pairs would take more than a few minutes (thousands of graphs).
        degrees: Whether to compare graphs by the degrees of their nodes, too, at all ``levels``. The feature of a node
            is log(1 + degree), without edge weights, averaged over neighbours like real-valued features; the cost is
            the Euclidean distance, without structure.
        cycles: Whether to compare labels together with the number of nodes of the shortest cycle through each node, at
            all ``levels``, without structure. Cycles of more than 8 nodes do not count. Cycles are not used if nodes
            with equal labels have equal cycles, or if features are real-valued.
        clustering: Whether to compare graphs by the clustering coefficients of their nodes, too, without structure. If
            ``None``, one regression on all distances compares them, and the mean of scores does not.
        combine: ``"scores"``: the mean of the scores of all distances. ``"distances"``: one kernel ridge regression on
            the sum of all distances, each relative to its median. ``"auto"``: the latter if there are more than 2,000
            graphs and its leave-one-out error is smaller by more than three standard errors. For fewer graphs, the
            leave-one-out error of ``"distances"``, and so ``loo_score_``, may be much too optimistic.
        n_starts: Number of starts of the solver per pair.
        canonical_order: Whether isomorphic graphs get the same scores, as in :class:`TFGWClassifier`.
        standardize: Whether to scale features to mean 0 and variance 1 over the training graphs. If ``None``, features
            are scaled unless all are 0 or 1.
        max_graphs: Maximum number of training graphs. If there are more, a random sample is used, with a warning.
        class_weight: Weights of the classes, as in :class:`TFGWClassifier`.
        cache: Folder that stores distances between training graphs; ``None`` stores none. See :meth:`precompute`.
        accelerator: Device of the solver: ``"cpu"``, ``"cuda"`` or ``"auto"``. Degrees and labels are compared
            on the CPU, except with structure.
        num_threads: Number of solver threads; ``None`` follows :func:`torch.get_num_threads`.
        random_state: Random seed for sampling ``max_graphs`` graphs.
        verbose: Whether to show progress bars.

    Attributes:
        classes_: The labels.
        model_: The trained :class:`tfgw.nn.KernelModel`.
        loo_score_: Leave-one-out accuracy: each training graph is classified by a machine trained without it. The value
            is slightly optimistic, because γ, λ, the weights and the preprocessing depend on all training graphs.
        training_indices_: Index in ``X`` of each training graph; explanations refer to training graphs by position. Not
            known for a machine that was loaded from a file.
        n_features_in_: Number of node features; 0 for graphs without features.
        preprocessing_: Preprocessing of the graphs.
        encoding_: As in :class:`TFGWClassifier`.
    """

    class_weight: ClassWeight | None = None

    classes_: np.ndarray = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Validation | None = None) -> Self:
        """Train on the graphs ``X`` with one label each.

        ``sample_weight`` contains a non-negative weight per graph; only their proportions matter. ``validation``, a
        pair of graphs and labels, is not used for training: ``validation_score_`` is its accuracy.
        """
        self._require_targets(y)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: at least two classes are required, but all labels are {self.classes_[0]!r}")
        classes = tuple(self.classes_.tolist())
        training = self._train(
            X,
            torch.from_numpy(numbers),
            task="classification",
            channels=len(classes),
            weights=given_weights(sample_weight, self.class_weight, numbers, classes),
            balanced_classes=self.class_weight == "balanced",
            classes=classes,
        )
        known = np.asarray(training.known)
        self.loo_score_ = float((training.left_out.argmax(1).numpy() == known).mean())
        if validation is not None:
            self.validation_score_ = self.score(*validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each graph."""
        return self.classes_[self._outputs(X).numpy().argmax(1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, ``(num_graphs, num_classes)``. Rows sum to 1."""
        return probabilities("classification", self._outputs(X)).numpy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores before the softmax, ``(num_graphs, num_classes)``.

        For two classes, return the score of the second minus that of the first, ``(num_graphs,)``.
        """
        scores = self._outputs(X).numpy()
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _target(self) -> tuple[Task, tuple[Any, ...]]:
        return "classification", tuple(self.classes_.tolist())

    def _set_target(self, trained: TrainedModel, path: str | os.PathLike[str]) -> None:
        if trained.task != "classification":
            raise ValueError(f"{path}: the model predicts values, not classes")
        self.classes_ = np.array(trained.classes)

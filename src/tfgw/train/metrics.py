"""Standard metrics of predictions."""

from typing import Any

import numpy as np

from tfgw.datasets.limits import check_array


def classification_metrics(y: np.ndarray, probabilities: np.ndarray) -> dict[str, Any]:
    """Compute metrics of class probabilities ``(G, classes)`` besides accuracy; ``y`` are the true class indices.

    ======================  ====================================================================================
    ``majority_rate``       share of the most frequent class: the accuracy of always predicting it
    ``balanced_accuracy``   mean of the accuracies on the graphs of each class
    ``macro_f1``            mean of the F1 scores of the classes
    ``roc_auc``             area under the ROC curve; for several classes the mean of one-vs-rest; ``None`` if all
                            graphs belong to one class
    ``confusion_matrix``    number of graphs of each true class (row) and predicted class (column)
    ======================  ====================================================================================

    Means exclude classes without a graph.
    """
    from sklearn.metrics import confusion_matrix, f1_score, recall_score  # takes a second to load

    predicted, num_classes = probabilities.argmax(axis=1), probabilities.shape[1]
    check_array(num_classes, num_classes, itemsize=8, what="confusion matrix", instead="compare predictions instead")
    counts = np.bincount(y, minlength=num_classes)
    present = np.flatnonzero(counts)
    return {
        "majority_rate": float(counts.max() / len(y)),
        # Computed directly, because balanced_accuracy_score warns about predicted classes that no graph has.
        "balanced_accuracy": float(recall_score(y, predicted, labels=present, average="macro")),
        "macro_f1": float(f1_score(y, predicted, labels=present, average="macro", zero_division=0)),
        "roc_auc": _roc_auc(y, probabilities, present),
        "confusion_matrix": confusion_matrix(y, predicted, labels=range(num_classes)).tolist(),
    }


def regression_metrics(y: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Compute MAE, RMSE and R² (``None`` for a single graph), averaged over targets."""
    from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

    return {
        "mae": float(mean_absolute_error(y, predicted)),
        "rmse": float(mean_squared_error(y, predicted)) ** 0.5,
        "r2": float(r2_score(y, predicted)) if len(y) > 1 else None,
    }


def _roc_auc(y: np.ndarray, probabilities: np.ndarray, present: np.ndarray) -> float | None:
    from sklearn.metrics import roc_auc_score

    if len(present) < 2:
        return None
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(y, probabilities[:, 1]))
    return float(np.mean([roc_auc_score(y == number, probabilities[:, number]) for number in present]))

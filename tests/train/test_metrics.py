import warnings

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from tfgw.train.metrics import classification_metrics, regression_metrics


def one_hot(predicted: list[int], classes: int) -> np.ndarray:
    return np.eye(classes)[predicted]


def test_known_answer_of_two_classes() -> None:
    y = np.array([0, 0, 0, 1, 1])
    second = np.array([0.1, 0.2, 0.6, 0.7, 0.4])
    found = classification_metrics(y, np.stack([1 - second, second], 1))
    assert found["majority_rate"] == 3 / 5
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["roc_auc"] == 5 / 6
    assert found["confusion_matrix"] == [[2, 1], [1, 1]]


def test_three_classes_agree_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, probabilities = rng.integers(3, size=40), rng.dirichlet([1, 1, 1], size=40)
    found = classification_metrics(y, probabilities)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, probabilities.argmax(1)))
    assert found["macro_f1"] == pytest.approx(f1_score(y, probabilities.argmax(1), average="macro"))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, probabilities, multi_class="ovr"))


@pytest.mark.filterwarnings("error")
def test_classes_without_a_graph() -> None:
    found = classification_metrics(np.array([0, 0, 2]), one_hot([0, 1, 2], 4))
    assert found["balanced_accuracy"] == 3 / 4
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["roc_auc"] == (0.75 + 1) / 2
    assert np.shape(found["confusion_matrix"]) == (4, 4)
    assert classification_metrics(np.array([1, 1]), one_hot([1, 0], 2))["roc_auc"] is None


def test_regression() -> None:
    found = regression_metrics(np.array([[1.0], [2.0], [6.0]]), np.array([[1.0], [4.0], [5.0]]))
    assert found == pytest.approx({"mae": 1, "rmse": (5 / 3) ** 0.5, "r2": 1 - 5 / 14})
    assert regression_metrics(np.array([[1.0]]), np.array([[1.5]])) == {"mae": 0.5, "rmse": 0.5, "r2": None}


def test_a_class_that_is_never_predicted_is_no_reason_to_warn() -> None:
    y, probabilities = np.array([0, 1, 2]), np.eye(3)[[0, 1, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classification_metrics(y, probabilities)["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)

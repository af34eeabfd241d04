"""scikit-learn's own checks of estimators.

The checks feed 2-D arrays, so they cannot run on estimators of graphs as they are. Here every row of such an array is
turned into a graph right at the door; all that lies behind is what users run.
"""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from tfgw.estimators import FGWDistances, TFGWClassifier, TFGWRegressor, TFGWTransformer

EDGE = np.array([[0, 1], [1, 0]])

_ARRAYS = "asks how arrays are read, which only the door of these tests does: graphs have no "

# Checks that pass or are skipped here without saying anything about estimators of graphs, and why.
NOT_APPLICABLE = {
    "check_array_api_input": _ARRAYS + "array namespace",
    "check_complex_data": _ARRAYS + "complex columns; complex features of a graph are tested in test_graphs",
    "check_dtype_object": _ARRAYS + "object columns",
    "check_estimator_sparse_array": _ARRAYS + "sparse form",
    "check_estimator_sparse_matrix": _ARRAYS + "sparse form",
    "check_estimator_sparse_tag": _ARRAYS + "sparse form",
    "check_estimators_empty_data_messages": _ARRAYS + "columns; an empty list is tested in test_graphs",
    "check_estimators_nan_inf": _ARRAYS + "missing values; those of a graph are tested in test_graphs",
    "check_f_contiguous_array_estimator": _ARRAYS + "memory order",
    "check_fit1d": _ARRAYS + "one-dimensional form",
    "check_fit2d_predict1d": _ARRAYS + "one-dimensional form",
    "check_n_features_in_after_fitting": _ARRAYS + "columns; features per node are tested in test_estimators",
    "check_readonly_memmap_input": _ARRAYS + "memory map",
}
# What is trained in batches does not promise these.
NOT_PROMISED = {
    "check_sample_weight_equivalence_on_dense_data": "a graph of weight 2 is one graph of a batch, not two",
}
# Run, and pass by finding nothing to check: there is no partial_fit.
#   check_estimators_partial_fit_n_features
# Not yielded, as tags, methods or parameters say that they do not apply:
#   check_classifier_multioutput                  several multi-class targets at once are not supported
#   check_fit_non_negative                        features may be negative


class OnRows:
    """Each row is a graph of two nodes: one with the row's features, one at the origin."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def _learn_input(self, X: Any) -> Any:
        return super()._learn_input(_graphs(validate_data(self, X, dtype=np.float64)))

    def _read_input(self, X: Any) -> Any:
        check_is_fitted(self)
        return super()._read_input(_graphs(validate_data(self, X, dtype=np.float64, reset=False)))


def _graphs(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(EDGE, np.stack([row, np.zeros_like(row)])) for row in rows]


class RowsClassifier(OnRows, TFGWClassifier):
    pass


class RowsRegressor(OnRows, TFGWRegressor):
    pass


class RowsTransformer(OnRows, TFGWTransformer):
    pass


class RowsDistances(OnRows, FGWDistances):
    pass


SMALL = {"template_nodes": 2, "num_layers": 0, "epochs": 2, "batch_size": 32, "accelerator": "cpu"}
ESTIMATORS = [
    RowsClassifier(num_templates=4, **SMALL),
    RowsRegressor(num_templates=12, **SMALL),
    RowsTransformer(num_templates=4, template_nodes=2),
    RowsDistances(),
]


EPOCHS = {"check_classifiers_classes": 8, "check_classifiers_train": 8, "check_regressors_train": 20}  # else 2


def _cases() -> list[Any]:
    return [
        pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}")
        for original in ESTIMATORS
        for estimator, check in estimator_checks_generator(original)
        if check.func.__name__ not in NOT_APPLICABLE | NOT_PROMISED and "X_dtype" not in check.keywords
    ]


@pytest.mark.parametrize(("estimator", "check"), _cases())
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # of scikit-learn's check
def test_check(estimator: Any, check: Any) -> None:
    epochs = EPOCHS.get(check.func.__name__)
    check(clone(estimator).set_params(epochs=epochs) if epochs else estimator)


def test_every_check_left_out_is_one_of_scikit_learn() -> None:
    yielded = {check.func.__name__ for original in ESTIMATORS for _, check in estimator_checks_generator(original)}
    assert NOT_APPLICABLE.keys() | NOT_PROMISED.keys() <= yielded


@pytest.mark.parametrize("estimator", [TFGWClassifier(), TFGWRegressor(), TFGWTransformer(), FGWDistances()])
def test_tags_say_that_arrays_are_no_input(estimator: Any) -> None:
    tags = get_tags(estimator)
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required == (not isinstance(estimator, TFGWTransformer | FGWDistances))
    with pytest.raises(ValueError, match=r"X: expected a list of graphs .* got ndarray"):
        estimator.fit(np.zeros((4, 3)), [0, 1, 0, 1])

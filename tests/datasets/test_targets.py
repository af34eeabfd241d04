import numpy as np
import pytest

from tfgw.datasets.targets import as_targets


def test_labels_are_numbered_in_sorted_order() -> None:
    targets = as_targets(["red", "blue", "red", "green"])
    assert targets.classes == ("blue", "green", "red")
    assert targets.y.tolist() == [2, 0, 2, 1]


def test_no_targets() -> None:
    assert as_targets(None) == (None, ())
    assert as_targets(np.ma.array([3, 4], mask=True)) == (None, ())


def test_targets_that_are_partly_known() -> None:
    y, classes = as_targets(np.ma.array([7, 0, 3, 7], mask=[False, True, False, False]))
    assert (y.tolist(), classes) == ([1, -1, 0, 1], (3, 7))
    values, none = as_targets(np.ma.array([0.5, 9.0], mask=[False, True]))
    assert (values[0].item(), bool(values[1].isnan()), none) == (0.5, True, ())
    assert as_targets(np.ma.array([4, 2], mask=False)).y.tolist() == [1, 0]


@pytest.mark.parametrize("values", [[{}, {}], [[1, 2], [3, 4]], [1j, 2j]])
def test_values_without_meaning_are_refused(values: list) -> None:
    with pytest.raises(ValueError, match="labels must be one integer or string per graph"):
        as_targets(values)


def test_target_that_is_not_finite_is_named() -> None:
    with pytest.raises(ValueError, match="graph 2: the target is not a finite number"):
        as_targets([0.5, 1.0, float("nan")])

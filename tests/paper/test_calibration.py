"""The expected calibration error of predictions made up by hand, and how a cell records it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.paper.small import CYCLES, CycleFinder, experiment
from tests.paper.test_run_cell import result
from tests.paper.test_summary import put
from tfgw.paper.calibration import BINS, calibration_bins, calibration_error
from tfgw.paper.plan import plan
from tfgw.paper.records import Records
from tfgw.paper.series import Options
from tfgw.paper.summary import summarise


def bins_of(*predictions: tuple[float, bool]) -> Any:
    confidence, correct = zip(*predictions, strict=True)
    return calibration_bins(np.array(confidence), np.array(correct))


def test_the_error_is_the_gap_of_each_bin() -> None:
    """In one bin 0.90 and 0.92, one of them wrong: 1.82 − 1. In another 0.6, correct: 0.4. Three predictions."""
    found = calibration_error([bins_of((0.90, True), (0.92, False), (0.6, True))])
    assert found == pytest.approx((0.82 + 0.4) / 3)


def test_gaps_of_opposite_sign_cancel_within_a_bin_only() -> None:
    assert calibration_error([bins_of((0.95, True), (0.95, False))]) == pytest.approx(0.45)
    assert calibration_error([bins_of((0.95, True), (0.3, False))]) == pytest.approx((0.05 + 0.3) / 2)


def test_test_sets_are_pooled_before_gaps_are_measured() -> None:
    """One graph per test set, 0.75 each, of which three in four are correct: alone each has an error, together none."""
    sets = [bins_of((0.75, correct)) for correct in (True, True, True, False)]
    assert calibration_error(sets) == pytest.approx(0)
    assert calibration_error(sets[3:]) == pytest.approx(0.75)


def test_full_confidence_is_in_the_last_bin() -> None:
    found = bins_of((1.0, True), (1 - 1 / BINS, False))
    assert found[-1] == (2, pytest.approx(2 - 1 / BINS), 1)
    assert sum(count for count, _, _ in found) == 2


class ConfidentCycleFinder(CycleFinder):
    """Predicts what it knows with a probability of 0.7."""

    def predict_proba(self, graphs: list[Any]) -> np.ndarray:
        return np.where(self.predict(graphs)[:, None] == np.arange(2), 0.7, 0.3)


def test_train_all_records_the_calibration_of_probabilities(tmp_path: Path) -> None:
    """All four test graphs of a fold are predicted correctly: the gap is 0.3. Without probabilities there is none."""
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    text = CYCLES.replace("small:CycleFinder", "test_calibration:ConfidentCycleFinder")
    (series,) = plan(experiment(tmp_path / "with", text, protocol="train-all"), Options(preset="smoke"))
    recorded = result(series.first_cells()[0], tmp_path)
    assert recorded["test_accuracy"] == 1.0
    assert sum(count for count, _, _ in recorded["calibration_bins"]) == 4
    assert calibration_error([recorded["calibration_bins"]]) == pytest.approx(0.3)
    (series,) = plan(experiment(tmp_path / "without", CYCLES, protocol="train-all"), Options(preset="smoke"))
    assert "calibration_bins" not in result(series.first_cells()[0], tmp_path)


def test_a_summary_has_the_error_of_all_folds_together_if_all_recorded_it(tmp_path: Path) -> None:
    (series,) = plan(experiment(tmp_path, CYCLES, protocol="train-all"), Options(preset="smoke"))
    records = Records(tmp_path / "results")
    common = {"validation_accuracy": None, "train_accuracy": 1.0}
    for cell in series.first_cells():  # every second prediction of 0.6 is correct
        put(records, cell, 0.5, calibration_bins=bins_of((0.6, cell.fold % 2 == 0)), **common)
    assert summarise(series, records).calibration_error == pytest.approx(0.1)
    put(records, series.first_cells()[-1], 0.5, **common)
    assert summarise(series, records).calibration_error is None

"""``train-all``: the test folds of ``fair``, with training on all other graphs and no selection."""

from typing import Any

import numpy as np

from tfgw.paper.calibration import calibration_bins
from tfgw.paper.cell_graphs import class_labels
from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Unit
from tfgw.paper.folds import Fold
from tfgw.paper.protocols.fair import FairFolds
from tfgw.paper.protocols.protocol import Measurement
from tfgw.paper.records import Record, Records
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary
from tfgw.train import Parts


class TrainAll(FairFolds):
    """For recipes that keep the last epoch, and for models that select their parameters within the training graphs."""

    name = "train-all"
    over = "folds"
    training = "Models are trained on all graphs outside of the test fold. There are no validation graphs."
    caption = (
        "Ours: mean over the test folds of the mean over the runs; ± is the standard deviation over folds.",
        training,
        "Calibration: expected calibration error of the predicted probabilities, over all test graphs together.",
    )
    columns = (*FairFolds.columns, "calibration")
    takes_splits = True

    def first_cells(self, series: Series) -> list[Cell]:
        return [cell for fold in range(series.sizes["folds"]) for cell in self._runs(series, fold)]

    def measure(self, cell: Cell, classifier: Any, parts: Parts) -> Measurement:
        """Measure accuracies and, if the classifier predicts probabilities, their calibration on the test graphs."""
        result, times = super().measure(cell, classifier, parts)
        assert parts.test is not None
        if hasattr(classifier, "predict_proba"):
            probabilities = classifier.predict_proba(list(parts.test))
            correct = classifier.classes_[probabilities.argmax(1)] == class_labels(parts.test)
            result["calibration_bins"] = calibration_bins(probabilities.max(1), correct)
        return Measurement(result, times)

    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        return [*super().row(series, summary, unit), unit.show(summary.calibration_error)]

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Return the runs of each fold."""
        groups = [records.all_done(self._runs(series, fold)) for fold in range(series.sizes["folds"])]
        return [group for group in groups if group]

    def used(self, fold: Fold) -> Fold:
        kept = np.sort(np.concatenate([fold.train, fold.validation]))
        return Fold(kept, fold.validation[:0], fold.test)

    def _runs(self, series: Series, fold: int) -> list[Cell]:
        if len(series.configurations) > 1:
            raise ValueError(
                f"{series.row.model}: has several configurations, but the protocol {self.name} does not select one"
            )
        runs = range(1, series.sizes["runs"] + 1)
        return [self._cell(series, series.configurations[0], fold=fold, seed=run) for run in runs]

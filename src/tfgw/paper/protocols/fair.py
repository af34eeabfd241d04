"""``fair``: ten test folds; in each, validation graphs select a configuration, whose final runs are averaged.

Errica, Podda, Bacciu, Micheli: A Fair Comparison of Graph Neural Networks for Graph Classification. ICLR 2020.
https://arxiv.org/abs/1912.09893
"""

from typing import Any

import numpy as np

from tfgw.paper.cells import Cell
from tfgw.paper.folds import Fold, draw_tenth, k_fold
from tfgw.paper.protocols.divided import VALIDATION_CAPTION, DividedProtocol
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.series import Series


class FairFolds(DividedProtocol):
    """Every graph is in one of ten test folds; a tenth of the others are validation graphs."""

    def folds(self, labels: np.ndarray, *, seed: int, groups: np.ndarray | None = None) -> list[Fold]:
        folds = []
        for kept, test in k_fold(np.arange(len(labels)), labels, seed=seed, groups=groups):
            train, validation = draw_tenth(kept, labels, seed=seed, groups=groups)
            folds.append(Fold(train, validation, test))
        return folds

    def configuration_cells(self, series: Series, fold: int) -> list[Cell]:
        """One run of each configuration."""
        return [self._cell(series, configuration, fold=fold) for configuration in series.configurations]


class Fair(FairFolds):
    """In each fold, one run of every configuration, and the final runs of the best one on the validation graphs.

    If there is only one configuration, only the final runs are made.
    """

    name = "fair"
    over = "folds"
    caption = (
        "Ours: mean over the test folds of the mean over the final runs; ± is the standard deviation over folds.",
        VALIDATION_CAPTION,
    )
    takes_splits = True

    def first_cells(self, series: Series) -> list[Cell]:
        folds = range(series.sizes["folds"])
        if _selects(series):
            return [cell for fold in folds for cell in self.configuration_cells(series, fold)]
        return [cell for fold in folds for cell in self.final_cells(series, fold, series.configurations[0])]

    def ready_cells(self, series: Series, records: Records) -> list[Cell]:
        """Return the known cells; the final runs of a fold are known after its selection."""
        cells = self.first_cells(series)
        for fold in range(series.sizes["folds"]) if _selects(series) else ():
            if (best := self.chosen(series, fold, records)) is not None:
                cells += self.final_cells(series, fold, best)
        return cells

    def total(self, series: Series) -> int:
        final = series.sizes["folds"] * series.sizes["runs"]
        return len(self.first_cells(series)) + final if _selects(series) else final

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Return the final runs of each fold."""
        groups = []
        for fold in range(series.sizes["folds"]):
            best = self.chosen(series, fold, records)
            if best is not None and (runs := records.all_done(self.final_cells(series, fold, best))):
                groups.append(runs)
        return groups

    def final_cells(self, series: Series, fold: int, configuration: dict[str, Any]) -> list[Cell]:
        """Return the runs to average."""
        return [self._cell(series, configuration, fold=fold, seed=run) for run in range(1, series.sizes["runs"] + 1)]

    def chosen(self, series: Series, fold: int, records: Records) -> dict[str, Any] | None:
        """Return the configuration with the best validation accuracy, or ``None`` if some have not been run."""
        if not _selects(series):
            return series.configurations[0]
        found = [records.get(cell) for cell in self.configuration_cells(series, fold)]
        if any(record is None for record in found):
            return None
        scores = [record["result"]["validation_accuracy"] if is_done(record) else -1.0 for record in found if record]
        return series.configurations[int(np.argmax(scores))] if max(scores) >= 0 else None


def _selects(series: Series) -> bool:
    return len(series.configurations) > 1

"""``paper``: hold-outs, each predicted by the ten models of a cross-validation on the other graphs.

This is our interpretation of the paper's protocol.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Unit
from tfgw.paper.folds import FOLDS, Fold, draw_tenth, k_fold
from tfgw.paper.protocols.divided import VALIDATION_CAPTION, DividedProtocol
from tfgw.paper.records import Record, Records
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary, mean_result


class Paper(DividedProtocol):
    """A tenth of the graphs is held out, with a ten-fold cross-validation on the others.

    The configuration with the best mean validation accuracy over the folds predicts the hold-out with its ten models.
    This is repeated with other hold-outs; the number of a hold-out is the seed of its split.
    """

    name = "paper"
    over = "hold-outs"
    caption = (
        "Ours: mean over hold-outs of the mean accuracy of the models of the folds; ± is the standard deviation over "
        "hold-outs, and in brackets that over the folds of one hold-out.",
        VALIDATION_CAPTION,
        "`test ≥ paper` and `validation ≥ paper` are the shares of hold-outs whose mean accuracy over the folds is at "
        "least the paper's mean.",
    )
    columns = (*DividedProtocol.columns, "test ≥ paper", "validation ≥ paper")
    repeats_the_paper = True

    def folds(self, labels: np.ndarray, *, seed: int, groups: np.ndarray | None = None) -> list[Fold]:
        kept, test = draw_tenth(np.arange(len(labels)), labels, seed=seed, groups=groups)
        return [Fold(train, validation, test) for train, validation in k_fold(kept, labels, seed=seed, groups=groups)]

    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        return [
            *super().row(series, summary, unit),
            unit.show(summary.test_reached),
            unit.show(summary.validation_reached),
        ]

    def remarks(self, series: Sequence[Series]) -> list[str]:
        used = sorted({one.sizes["folds"] for one in series if one.sizes["folds"] < FOLDS})
        return [f"Only {count} of the {FOLDS} models of a hold-out {_was(count)} trained." for count in used]

    def first_cells(self, series: Series) -> list[Cell]:
        holdouts = range(series.sizes["holdouts"])
        return [cell for number in holdouts for cell in self.holdout_cells(series, number)]

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Return the folds of each hold-out with its selected configuration."""
        groups = []
        for number in range(series.sizes["holdouts"]):
            if found := records.all_done(self.holdout_cells(series, number)):
                size = series.sizes["folds"]
                by_configuration = [found[start : start + size] for start in range(0, len(found), size)]
                groups.append(max(by_configuration, key=_validation_accuracy))
        return groups

    def unit(self, cell: dict[str, Any]) -> tuple[int, ...]:
        """Return the number of the hold-out."""
        return (cell["split_seed"],)

    def holdout_cells(self, series: Series, number: int) -> list[Cell]:
        """Return all configurations on all folds of one hold-out."""
        return [
            self._cell(series, configuration, split_seed=number, fold=fold)
            for configuration in series.configurations
            for fold in range(series.sizes["folds"])
        ]


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _validation_accuracy(folds: list[Record]) -> float:
    return mean_result(folds, "validation_accuracy") or 0.0

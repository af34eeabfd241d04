"""The cells behind one figure of a table: a model on a dataset under a protocol, and what its records say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Experiment, Row, select
from tfgw.paper.protocol import digest, splits_file
from tfgw.paper.records import Record, Records, is_done


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user chooses besides experiment, datasets and models; it becomes part of every cell.

    Args:
        preset: ``"smoke"``, ``"quick"`` or ``"full"``.
        protocol: One of the experiment's protocols; ``None``: its first.
        grouped: Whether isomorphic graphs stay on the same side of every split.
        splits: File or folder of published splits for the protocol ``fair``.
    """

    preset: str = "quick"
    protocol: str | None = None
    grouped: bool = False
    splits: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """One row on one dataset under one protocol: those of :mod:`tfgw.paper.protocol`, and

    ``synthetic``  generated datasets, each with training and test graphs of its own
    ``sweep``      every configuration on every fold of ``fair``; nothing is chosen
    ``timing``     how long predictions take
    """

    row: Row
    dataset: str
    protocol: str
    configurations: list[dict[str, Any]]
    sizes: dict[str, int]
    grouped: bool = False
    splits: str | None = None

    @property
    def total(self) -> int:
        """How many cells there are, those included that are not known before others are done."""
        if self.row.path is None:
            return 0
        if self.protocol != "fair":
            return len(self.first_cells())
        return len(self.first_cells()) + (len(self._folds) * self.sizes["runs"] if self._chooses else 0)

    def first_cells(self) -> list[Cell]:
        """The cells that depend on no others."""
        if self.row.path is None:
            return []
        if self.protocol == "fair" and not self._chooses:
            return [cell for fold in self._folds for cell in self.final_cells(fold, self.configurations[0])]
        if self.protocol in ("fair", "sweep"):
            return [cell for fold in self._folds for cell in self.selection_cells(fold)]
        if self.protocol == "paper":
            return [cell for number in range(self.sizes["holdouts"]) for cell in self.holdout_cells(number)]
        if self.protocol == "synthetic":
            seeds = range(self.sizes["seeds"])
            return [self._cell(one, split_seed=seed) for one in self.configurations for seed in seeds]
        return [self._cell(configuration) for configuration in self.configurations]

    def ready_cells(self, records: Records) -> list[Cell]:
        """All cells that are known by now: in ``fair``, the final runs once the selection is finished."""
        cells = self.first_cells()
        if self.protocol == "fair" and self._chooses:
            chosen = {fold: self.chosen(fold, records) for fold in self._folds}
            cells += [cell for fold, best in chosen.items() if best for cell in self.final_cells(fold, best)]
        return cells

    def selection_cells(self, fold: int) -> list[Cell]:
        """One run of each configuration: in ``fair``, those among which the validation accuracy chooses."""
        return [self._cell(configuration, fold=fold) for configuration in self.configurations]

    def final_cells(self, fold: int, configuration: dict[str, Any]) -> list[Cell]:
        """``fair``: the runs that are averaged."""
        return [self._cell(configuration, fold=fold, seed=run) for run in range(1, self.sizes["runs"] + 1)]

    def holdout_cells(self, number: int) -> list[Cell]:
        """``paper``: all configurations on all folds around one hold-out."""
        return [
            self._cell(configuration, split_seed=number, fold=fold)
            for configuration in self.configurations
            for fold in self._folds
        ]

    def chosen(self, fold: int, records: Records) -> dict[str, Any] | None:
        """``fair``: the configuration with the best validation accuracy, once all have been tried."""
        if not self._chooses:
            return self.configurations[0]
        found = [records.get(cell) for cell in self.selection_cells(fold)]
        if any(record is None for record in found):
            return None
        scores = [record["result"]["validation_accuracy"] if is_done(record) else -1.0 for record in found if record]
        return self.configurations[int(np.argmax(scores))] if max(scores) >= 0 else None

    @property
    def _chooses(self) -> bool:
        return len(self.configurations) > 1

    @property
    def _folds(self) -> range:
        return range(self.sizes["folds"])

    @property
    def _graphs(self) -> int | None:
        is_divided = self.protocol not in ("synthetic", "timing")
        return (self.sizes["graphs"] or None) if is_divided and self.splits is None else None

    def _cell(self, configuration: dict[str, Any], **position: int) -> Cell:
        return Cell(
            dataset=self.dataset,
            model=str(self.row.path),
            configuration=configuration,
            protocol="fair" if self.protocol == "sweep" else self.protocol,
            grouped=self.grouped,
            splits=self.splits,
            collect=self.row.collect,
            graphs=self._graphs,
            **position,
        )


def plan(
    experiment: Experiment,
    options: Options,
    *,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
) -> list[Series]:
    """All series of an experiment, or those of some datasets and models."""
    protocol = options.protocol or experiment.protocols[0]
    select(experiment.protocols, [protocol], "protocol")
    if options.splits is not None and (protocol != "fair" or options.grouped):
        raise ValueError("splits: a file of splits is for the protocol 'fair', and groups nothing")
    wanted = select([row.model for row in experiment.rows], models, "model")
    rows = [row for row in experiment.rows if row.model in wanted]
    return [
        _series(experiment, row, dataset, protocol, options)
        for dataset in select(experiment.datasets, datasets, "dataset")
        for row in rows
    ]


def _series(experiment: Experiment, row: Row, dataset: str, protocol: str, options: Options) -> Series:
    preset = options.preset
    sizes = ("folds", "graphs", "holdouts", "runs", "seeds")
    return Series(
        row=row,
        dataset=dataset,
        protocol=protocol,
        configurations=experiment.configurations(row, dataset, preset),
        sizes={name: experiment.setting(row, dataset, preset, name) for name in sizes},
        grouped=options.grouped,
        splits=None if options.splits is None else digest(splits_file(options.splits, dataset)),
    )


def finished(series: Series, records: Records) -> list[Record]:
    """Records of the cells of a series that are known by now."""
    found = (records.get(cell) for cell in series.ready_cells(records))
    return [record for record in found if record is not None]

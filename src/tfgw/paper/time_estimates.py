"""Time estimates of cells from the records of others.

records ─▶ mean seconds of equal cells on one machine ─┬▶ the mean, if equal cells have run on this machine
                                                       └▶ TimeModel ─▶ estimate for cells that have not
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from tfgw.paper.cell_times import SIZES, times_of
from tfgw.paper.cells import Cell
from tfgw.paper.records import Record
from tfgw.paper.time_model import NOISE, TimeModel, Times

SHORTEST = 0.001
"""Smallest time of a cell in seconds."""

GROWTH = 1.02
"""The model is fitted again when the number of records has grown by this factor."""


class Basis(StrEnum):
    """The most similar cells that an estimate is based on."""

    HERE = "equal cells on this machine"
    ELSEWHERE = "equal cells on other machines"
    DATASET = "the same model and dataset with other settings"
    MODEL = "the same model on other datasets"


SHARED = {
    Basis.ELSEWHERE: ("model", "dataset", "configuration"),
    Basis.DATASET: ("model", "dataset"),
    Basis.MODEL: ("model",),
}
"""What a cell shares with the most similar ones."""


class Estimate(NamedTuple):
    """Seconds of a cell, the standard deviation of their logarithm, and what both are based on."""

    seconds: float
    deviation: float
    basis: Basis


class Total(NamedTuple):
    """Estimate for several cells.

    Attributes:
        seconds: Sum over the cells with an estimate.
        deviation: Standard deviation of its logarithm, if the errors of all cells have the same cause.
        unknown: Number of cells without an estimate.
        basis: Number of cells by what their estimates are based on.
    """

    seconds: float
    deviation: float
    unknown: int
    basis: dict[Basis, int]


class TimeEstimates:
    """Estimates of seconds per cell on one machine.

    Args:
        records: Records of finished cells.
        here: The machine of the estimates, as records describe it.
    """

    def __init__(self, records: Iterable[Record] = (), here: Mapping[str, Any] | None = None) -> None:
        self._here = here or {}
        self._times: dict[Hashable, Times] = {}
        self._seconds: dict[Hashable, list[float]] = {}
        self._shared: set[tuple[Hashable, ...]] = set()
        self._learned = self._fitted = 0
        self._model: TimeModel | None = None
        self._estimates: dict[Hashable, Estimate] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Add a record."""
        seconds = record["run"].get("seconds")
        if record["status"] == "done" and seconds is not None:
            times = times_of(Cell(**record["cell"]), record["run"].get("machine", {}))
            self._times[times.key] = times
            self._seconds.setdefault(times.key, []).append(max(seconds, SHORTEST))
            self._shared |= {times.values(names) for names in SHARED.values()}
            self._learned += 1

    def estimate(self, cell: Cell) -> Estimate | None:
        """Return the estimate for a cell, or ``None`` if its model has not run, or its dataset is of unknown size."""
        wanted = times_of(cell, self._here)
        if (measured := self._seconds.get(wanted.key)) is not None:
            return Estimate(float(np.mean(measured)), NOISE / len(measured) ** 0.5, Basis.HERE)
        basis = next((basis for basis, names in SHARED.items() if wanted.values(names) in self._shared), None)
        if basis is None or (basis == Basis.MODEL and cell.dataset not in SIZES):
            return None
        model = self._fitted_model()
        if wanted.key not in self._estimates:
            (mean,), (deviation,) = model.predict([wanted])
            self._estimates[wanted.key] = Estimate(exp(mean), float(deviation), basis)
        return self._estimates[wanted.key]

    def total(self, cells: Sequence[Cell], *, waiting: int = 0) -> Total:
        """Return the estimate for all cells together.

        Args:
            cells: The cells.
            waiting: Number of further cells that are not known yet. They take the average time of those with an
                estimate.
        """
        found = [self.estimate(cell) for cell in cells]
        known = [one for one in found if one is not None]
        seconds = sum(one.seconds for one in known)
        counts = {basis: sum(one.basis == basis for one in known) for basis in Basis}
        return Total(
            seconds=seconds * (1 + waiting / len(known)) if known else 0.0,
            deviation=sum(one.seconds * one.deviation for one in known) / seconds if known else 0.0,
            unknown=len(found) - len(known),
            basis={basis: count for basis, count in counts.items() if count},
        )

    def _fitted_model(self) -> TimeModel:
        if self._model is None or self._learned > GROWTH * self._fitted:
            means = {key: (log(float(np.mean(seconds))), len(seconds)) for key, seconds in self._seconds.items()}
            known = [
                times._replace(log_seconds=means[key][0], cells=means[key][1]) for key, times in self._times.items()
            ]
            self._model, self._fitted, self._estimates = TimeModel(known), self._learned, {}
        return self._model


def format_duration(seconds: float) -> str:
    """Format a duration, rounded to a convenient unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"

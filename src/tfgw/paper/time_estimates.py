"""Time estimates of cells from the records of others."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from tfgw.paper.cells import Cell
from tfgw.paper.records import Record


class TimeEstimates:
    """Estimates of seconds per cell from records.

    The estimate is the mean over cells with the same dataset, class and configuration. If there are none, it is the
    mean over cells whose configuration differs only in numbers, scaled by the number of epochs.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._same: dict[str, list[float]] = defaultdict(list)
        self._similar: dict[str, list[float]] = defaultdict(list)
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Add a record."""
        seconds = record["run"].get("seconds")
        if record["status"] == "done" and seconds is not None:
            cell = Cell(**record["cell"])
            self._same[_same(cell)].append(seconds)
            self._similar[_similar(cell)].append(seconds / _epochs(cell))

    def seconds(self, cell: Cell) -> float | None:
        """Return the estimate for a cell, or ``None`` if no similar cell has been run."""
        if self._same[_same(cell)]:
            return float(np.mean(self._same[_same(cell)]))
        if self._similar[_similar(cell)]:
            return float(np.mean(self._similar[_similar(cell)])) * _epochs(cell)
        return None


def _same(cell: Cell) -> str:
    return f"{cell.group} {json.dumps(cell.configuration, sort_keys=True)}"


def _similar(cell: Cell) -> str:
    kinds = {name: value for name, value in cell.configuration.items() if isinstance(value, bool | str | dict)}
    return f"{cell.group} {json.dumps(kinds, sort_keys=True)}"


def _epochs(cell: Cell) -> Any:
    return cell.configuration.get("epochs", 1)


def format_duration(seconds: float) -> str:
    """Format a duration, rounded to a convenient unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"

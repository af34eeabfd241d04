"""Run the missing cells of series."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tqdm import tqdm

from tfgw.paper.cells import Cell
from tfgw.paper.changes import changes_since
from tfgw.paper.engines import Allocation, run_locally, run_on_ray
from tfgw.paper.machine import machine
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.run_cell import check_inputs
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.paper.time_estimates import TimeEstimates, Total, format_duration


class Outcome(NamedTuple):
    """Result of a run.

    Attributes:
        done: Number of cells that succeeded.
        failed: Records of all failures, including those of earlier runs.
        missing: Number of cells without a record, including those that depend on failed cells.
        total: Total number of cells.
    """

    done: int
    failed: list[Record]
    missing: int
    total: int


class RerunPolicy(NamedTuple):
    """Which cells with a record to run again: those that failed, and those that are older than a change of the code."""

    failed: bool = False
    changed: bool = False


ONLY_MISSING = RerunPolicy()


class Forecast(NamedTuple):
    """Number of missing cells, and the estimate of their time, in which cells that are not known yet are average."""

    cells: int
    time: Total


def run(
    series: Sequence[Series],
    context: RunContext,
    allocation: Allocation,
    *,
    engine: str = "local",
    address: str | None = None,
    rerun: RerunPolicy = ONLY_MISSING,
    progress_bar: bool = False,
) -> Outcome:
    """Run the missing cells and write their records to ``context.results``. Safe to kill and to call again."""
    records = Records(context.results)
    total = sum(one.total for one in series)
    check_inputs(missing(series, records, rerun), context)

    def start(cells: Sequence[Cell]) -> Iterator[Record]:
        if engine == "ray":
            return run_on_ray(cells, context, address=address, gpu=allocation.gpu)
        return run_locally(cells, context, jobs=allocation.jobs)

    done, tried = 0, set[str]()
    estimates = TimeEstimates(records, machine(context.accelerator))
    progress = Progress(total, estimates, allocation.jobs, visible=progress_bar)
    while cells := [cell for cell in missing(series, records, rerun) if cell.key not in tried]:
        tried |= {cell.key for cell in cells}
        progress.begin(cells, recorded=len(known(series, records)))
        for record in start(cells):
            progress.end(record)
            done += is_done(record)
    progress.close()
    failed = [record for record in known(series, records) if record["status"] == "failed"]
    return Outcome(done, failed, total - sum(len(known([one], records)) for one in series), total)


def missing(series: Sequence[Series], records: Records, rerun: RerunPolicy = ONLY_MISSING) -> list[Cell]:
    """Return cells without a record, and those to run again, each once.

    Cells whose process was killed are always retried, because the cause may lie outside the cell.
    """
    found: dict[str, Cell] = {}
    for one in series:
        for cell in one.ready_cells(records):
            record = records.get(cell)
            if record is None or record.get("killed") or _is_due(record, rerun):
                found[cell.key] = cell
    return list(found.values())


def _is_due(record: Record, rerun: RerunPolicy) -> bool:
    if not is_done(record):
        return rerun.failed
    return rerun.changed and bool(changes_since(record))


def known(series: Sequence[Series], records: Records) -> list[Record]:
    """Return the records of all cells of the series."""
    cells = {cell.key: cell for one in series for cell in one.ready_cells(records)}
    return [record for cell in cells.values() if (record := records.get(cell)) is not None]


def forecast(
    series: Sequence[Series], records: Records, here: Mapping[str, Any] | None = None, rerun: RerunPolicy = ONLY_MISSING
) -> Forecast:
    """Estimate the work of :func:`run` on the machine ``here``."""
    cells = missing(series, records, rerun)
    waiting = sum(one.total - len(one.ready_cells(records)) for one in series)
    return Forecast(len(cells) + waiting, TimeEstimates(records, here).total(cells, waiting=waiting))


class Progress:
    """A progress bar over cells, with an estimate of the remaining time from similar cells."""

    def __init__(self, total: int, estimates: TimeEstimates, jobs: int, *, visible: bool) -> None:
        self._estimates, self._jobs = estimates, jobs
        self._left: dict[str, Cell] = {}
        self._later = 0
        self._bar = tqdm(
            total=total,
            unit="cell",
            disable=not visible,
            file=sys.stderr,
            bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} cells [{elapsed}{postfix}]",
        )

    def begin(self, cells: Sequence[Cell], *, recorded: int) -> None:
        """Register the cells that start now; ``recorded`` others have finished before."""
        self._left = {cell.key: cell for cell in cells}
        self._later = max(0, self._bar.total - recorded - len(cells)) if self._bar.total else 0
        self._show()

    def end(self, record: Record) -> None:
        """Register a finished cell."""
        cell = Cell(**record["cell"])
        self._left.pop(cell.key, None)
        self._estimates.learn(record)
        self._show(f"; last: {cell.dataset}, {record['status']}")

    def close(self) -> None:
        """Close the bar and leave it on the screen."""
        self._bar.close()

    def _show(self, last: str = "") -> None:
        if not self._bar.disable:
            self._bar.n = self._bar.total - len(self._left) - self._later
            self._bar.set_postfix_str(self.remaining() + last)

    def remaining(self) -> str:
        """Return a description of the remaining time; cells without an estimate are only counted."""
        if not self._left:
            return "done"
        time = self._estimates.total(list(self._left.values()))
        known = len(self._left) - time.unknown
        if not known:
            return "time left: unknown"
        seconds = time.seconds * (1 + self._later / known)
        text = f"time left: about {format_duration(seconds / self._jobs)}"
        return f"{text} and {time.unknown} cells of unknown duration" if time.unknown else text

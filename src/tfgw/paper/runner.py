"""Run the missing cells of series."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tqdm import tqdm

from tfgw.paper.cells import Cell
from tfgw.paper.engines import Allocation, run_locally, run_on_ray
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.run_cell import check_inputs
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.paper.time_estimates import TimeEstimates, format_duration

Engine = Callable[[Sequence[Cell]], Iterator[Record]]


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


class Forecast(NamedTuple):
    """Number of missing cells, number of them without a time estimate, and estimated seconds for the others."""

    cells: int
    unknown: int
    seconds: float


def run(
    series: Sequence[Series],
    context: RunContext,
    allocation: Allocation,
    *,
    engine: str = "local",
    address: str | None = None,
    retry_failed: bool = False,
    progress_bar: bool = False,
) -> Outcome:
    """Run the missing cells and write their records to ``context.results``. Safe to kill and to call again."""
    records = Records(context.results)
    total = sum(one.total for one in series)
    check_inputs(missing(series, records, retry_failed=retry_failed), context)

    def start(cells: Sequence[Cell]) -> Iterator[Record]:
        if engine == "ray":
            return run_on_ray(cells, context, address=address, gpu=allocation.gpu)
        return run_locally(cells, context, jobs=allocation.jobs)

    done, tried = 0, set[str]()
    progress = Progress(total, TimeEstimates(records), allocation.jobs, visible=progress_bar)
    while cells := [cell for cell in missing(series, records, retry_failed=retry_failed) if cell.key not in tried]:
        tried |= {cell.key for cell in cells}
        progress.begin(cells, recorded=len(known(series, records)))
        for record in start(cells):
            progress.end(record)
            done += is_done(record)
    progress.close()
    failed = [record for record in known(series, records) if record["status"] == "failed"]
    return Outcome(done, failed, total - sum(len(known([one], records)) for one in series), total)


def missing(series: Sequence[Series], records: Records, *, retry_failed: bool = False) -> list[Cell]:
    """Return cells without a record, each once; with ``retry_failed``, also those that failed.

    Cells whose process was killed are always retried, because the cause may lie outside the cell.
    """
    found: dict[str, Cell] = {}
    for one in series:
        for cell in one.ready_cells(records):
            record = records.get(cell)
            if record is None or record.get("killed") or (retry_failed and not is_done(record)):
                found[cell.key] = cell
    return list(found.values())


def known(series: Sequence[Series], records: Records) -> list[Record]:
    """Return the records of all cells of the series."""
    cells = {cell.key: cell for one in series for cell in one.ready_cells(records)}
    return [record for cell in cells.values() if (record := records.get(cell)) is not None]


def forecast(series: Sequence[Series], records: Records, *, retry_failed: bool = False) -> Forecast:
    """Estimate the work of :func:`run`. Unknown cells are assumed to take as long as the known ones."""
    estimates = TimeEstimates(records)
    cells = missing(series, records, retry_failed=retry_failed)
    times = [estimates.seconds(cell) for cell in cells]
    waiting = sum(one.total - len(one.ready_cells(records)) for one in series)
    measured = [seconds for seconds in times if seconds is not None]
    mean = sum(measured) / len(measured) if measured else 0.0
    return Forecast(len(cells) + waiting, len(times) - len(measured), sum(measured) + waiting * mean)


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
        self._bar.n = self._bar.total - len(self._left) - self._later
        self._bar.set_postfix_str(self.remaining() + last)

    def remaining(self) -> str:
        """Return a description of the remaining time; cells without an estimate are only counted."""
        times = [self._estimates.seconds(cell) for cell in self._left.values()]
        measured = [seconds for seconds in times if seconds is not None]
        if not measured:
            return "time left: unknown" if times else "done"
        later = self._later * sum(measured) / len(measured)
        text = f"time left: about {format_duration((sum(measured) + later) / self._jobs)}"
        unknown = len(times) - len(measured)
        return f"{text} and {unknown} cells of unknown duration" if unknown else text

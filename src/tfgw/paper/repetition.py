"""Run finished cells again, and compare the results with their records.

finished cells ─ random sample ─▶ run in a temporary folder ─▶ old and new record ─▶ Repetition
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from tfgw.paper.engines import run_locally
from tfgw.paper.records import Record, Records, is_done, key_of
from tfgw.paper.run_cell import check_inputs
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series, finished

OLDEST = "unknown"
"""Value of what an old record does not name."""

CODE = {"commit", "committed", "core", "tfgw"}
"""What describes the code of this package in a record."""


class Repetition(NamedTuple):
    """A cell that was run again.

    Attributes:
        dataset: Name of the dataset.
        model: Name of the model in the experiment.
        cell: The fields of the cell.
        old: Test accuracy of the record; ``None`` if its protocol does not measure it.
        new: Test accuracy now; ``None`` if it was not measured, or if the cell failed.
        equal: Whether all values that both results contain are equal.
        run_deviation: Standard deviation of the test accuracy over the runs of a test fold, averaged over the folds of
            the row; ``None`` if there is one run.
        deviation: Standard deviation of the row over its test folds, hold-outs or seeds.
        changed: What differs between the runs: parts of the machine and versions, with the old and the new value.
        error: Error of the new run; ``None`` if it succeeded.
    """

    dataset: str
    model: str
    cell: dict[str, Any]
    old: float | None
    new: float | None
    equal: bool
    run_deviation: float | None
    deviation: float | None
    changed: dict[str, tuple[str, str]]
    error: str | None

    @property
    def same_machine(self) -> bool:
        """Whether both runs had the same processor, GPU and releases; the code of this package may differ."""
        return not self.changed.keys() - CODE

    @property
    def difference(self) -> float | None:
        """New minus old test accuracy."""
        return None if self.old is None or self.new is None else self.new - self.old


def draw_finished(series: Sequence[Series], records: Records, *, count: int, seed: int) -> list[tuple[Series, Record]]:
    """Draw ``count`` finished cells of the series, or all if there are fewer, in random order."""
    found = {key_of(record): (one, record) for one in series for record in finished(one, records) if is_done(record)}
    return random.Random(seed).sample([found[key] for key in sorted(found)], min(count, len(found)))


def repeat(
    drawn: Sequence[tuple[Series, Record]], records: Records, context: RunContext, *, jobs: int
) -> Iterator[Repetition]:
    """Run cells again in a temporary folder, without stored distances, and yield them as they finish."""
    known = {key_of(record): (series, record) for series, record in drawn}
    cells = [cell for series, record in drawn for cell in series.ready_cells(records) if cell.key == key_of(record)]
    with TemporaryDirectory(prefix="tfgw-check-") as folder:
        apart = replace(context, results=Path(folder) / "results", distances=Path(folder) / "distances")
        check_inputs(cells, apart)
        for record in run_locally(cells, apart, jobs=jobs):
            yield _repetition(*known[key_of(record)], record, records)


def _repetition(series: Series, old: Record, new: Record, records: Records) -> Repetition:
    results: dict[str, Any] = new.get("result", {})
    groups = series.protocol.complete_groups(series, records)
    tests = [[record["result"]["test_accuracy"] for record in group] for group in groups]
    within = [float(np.std(group, ddof=1)) for group in tests if len(group) > 1]
    return Repetition(
        dataset=series.dataset,
        model=series.row.model,
        cell=old["cell"],
        old=old["result"].get("test_accuracy"),
        new=results.get("test_accuracy"),
        equal=bool(results) and all(results[name] == old["result"][name] for name in old["result"].keys() & results),
        run_deviation=float(np.mean(within)) if within else None,
        deviation=float(np.std([np.mean(group) for group in tests], ddof=1)) if len(tests) > 1 else None,
        changed=_changes(_circumstances(old), _circumstances(new)),
        error=new.get("error"),
    )


def _circumstances(record: Record) -> dict[str, str]:
    """Return what a result may depend on besides the cell, as text."""
    run = record["run"]
    machine = {name: str(run.get("machine", {}).get(name, OLDEST)) for name in ("processor", "instructions", "gpu")}
    return machine | run.get("versions", {})


def _changes(old: dict[str, str], new: dict[str, str]) -> dict[str, tuple[str, str]]:
    pairs = {name: (old.get(name, OLDEST), new.get(name, OLDEST)) for name in sorted(old.keys() | new.keys())}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

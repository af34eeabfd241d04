"""Cells that are run again: which, where, and how the results are compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.paper.small import CYCLES, PrecomputingCycleFinder, experiment
from tfgw.cli.repetition_text import repetition_text
from tfgw.paper.experiment import Experiment
from tfgw.paper.plan import plan
from tfgw.paper.records import Record, Records, key_of
from tfgw.paper.repetition import Repetition, draw_finished, repeat
from tfgw.paper.run_cell import run_cell
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Options, Series


def finished_experiment(
    folder: Path, model: str = CYCLES, *, cells: int = 8
) -> tuple[Experiment, Series, Records, RunContext]:
    """Two test folds of four runs each are done, or fewer cells."""
    mine = experiment(folder, model)
    (series,) = plan(mine, Options(preset="smoke"))
    context = RunContext(results=folder / "results", accelerator="cpu")
    for cell in series.first_cells()[:cells]:
        run_cell(cell, context)
    return mine, series, Records(context.results), context


def change(records: Records, record: Record, *, machine: dict[str, Any] | None = None, **result: Any) -> Record:
    """Store a record with another result, or of another machine."""
    run = record["run"] | ({"machine": record["run"]["machine"] | machine} if machine else {})
    changed = record | {"result": record["result"] | result, "run": run}
    records.put(changed)
    return changed


def repeated(series: Series, record: Record, records: Records, context: RunContext) -> Repetition:
    (found,) = repeat([(series, record)], records, context, jobs=1)
    return found


def test_a_random_choice_of_finished_cells(tmp_path: Path) -> None:
    _, series, records, _ = finished_experiment(tmp_path)
    choices = [draw_finished([series], records, count=3, seed=seed) for seed in range(12)]
    keys = [tuple(key_of(record) for _, record in drawn) for drawn in choices]
    assert all(len(set(drawn)) == 3 for drawn in keys)
    assert len(set(keys)) > 6
    assert {key for drawn in keys for key in drawn} == {key_of(record) for record in records}
    again = draw_finished([series, series], records, count=3, seed=5)  # a cell of two rows is drawn once
    assert tuple(key_of(record) for _, record in again) == keys[5]
    assert len(draw_finished([series], records, count=100, seed=0)) == 8
    assert draw_finished([series], Records(tmp_path / "nothing"), count=3, seed=0) == []


def test_an_equal_result(tmp_path: Path) -> None:
    """Records are not touched, and what has changed since is empty on the same machine with the same code."""
    mine, series, records, context = finished_experiment(tmp_path)
    before = list(records)
    found = repeated(series, before[2], records, context)
    assert list(Records(context.results)) == before
    assert (found.equal, found.old, found.new, found.difference, found.error) == (True, 1.0, 1.0, 0.0, None)
    assert (found.same_machine, found.changed, found.cell) == (True, {}, before[2]["cell"])
    assert (found.run_deviation, found.deviation) == (0.0, 0.0)
    text = repetition_text(mine, [found]).splitlines()
    assert text[1] == "1 cells were run again; 1 gave the same result."
    assert text[-1].endswith("equal")


def test_another_result_beside_the_spread_of_its_row(tmp_path: Path) -> None:
    """Test accuracies of the runs are 0.5, 0.6, 0.8 and 0.9 in one fold, and 0.7 in the other."""
    mine, series, records, context = finished_experiment(tmp_path)
    cells = series.first_cells()[:8]
    for cell, accuracy in zip(cells, (0.5, 0.6, 0.8, 0.9, 0.7, 0.7, 0.7, 0.7), strict=True):
        change(records, records.get(cell), test_accuracy=accuracy)
    found = repeated(series, records.get(cells[1]), records, context)
    assert (found.equal, found.old, found.new, found.difference) == (False, 0.6, 1.0, pytest.approx(0.4))
    assert found.run_deviation == pytest.approx((0.1 / 3) ** 0.5 / 2)
    assert found.deviation == pytest.approx(0.0)
    text = repetition_text(mine, [found])
    assert "60.0    100.0  +40.0       9.1     0.0      different, on the same machine" in text


def test_what_differs_from_another_machine(tmp_path: Path) -> None:
    mine, series, records, context = finished_experiment(tmp_path, cells=1)
    (record,) = records
    elsewhere = {"processor": "Fast", "gpu": "Faster"}
    found = repeated(series, change(records, record, machine=elsewhere, test_accuracy=0.25), records, context)
    here = record["run"]["machine"]["processor"]
    assert found.changed == {"processor": ("Fast", here), "gpu": ("Faster", "None")}
    assert not found.same_machine
    assert (found.run_deviation, found.deviation) == (None, None)
    text = repetition_text(mine, [found]).splitlines()
    assert text[-2:] == ["gpu: Faster → None", f"processor: Fast → {here}"]
    assert "different, on another machine" in text[-5]
    machine_of_old = {name: value for name, value in record["run"]["machine"].items() if name != "instructions"}
    old = record | {"run": record["run"] | {"machine": machine_of_old}}
    assert list(repeated(series, old, records, context).changed) == ["instructions"]
    changed = change(records, record, machine=elsewhere, alpha=0.5)
    assert repeated(series, changed, records, context).equal  # the classifier does not measure α any more
    same_accuracy = found._replace(old=0.5, new=0.5)
    assert "equal accuracy, on another machine" in repetition_text(mine, [same_accuracy])


def test_only_the_code_may_differ_on_the_same_machine(tmp_path: Path) -> None:
    _, series, records, context = finished_experiment(tmp_path, cells=1)
    (record,) = records
    for name, is_same in (("commit", True), ("committed", True), ("core", True), ("tfgw", True), ("torch", False)):
        versions = record["run"]["versions"] | {name: "0.0.7"}
        found = repeated(series, record | {"run": record["run"] | {"versions": versions}}, records, context)
        assert (list(found.changed), found.same_machine) == ([name], is_same)


def test_a_cell_that_fails_now(tmp_path: Path) -> None:
    mine, series, records, context = finished_experiment(tmp_path, cells=1)
    (record,) = records
    (cell, *_) = series.first_cells()
    failing = replace(series, configurations=[{"error": "no luck"}])
    record = record | {"cell": cell.as_dict() | {"configuration": {"error": "no luck"}}}
    records.put(record)
    found = repeated(failing, record, records, context)
    assert (found.equal, found.new, found.difference, found.error) == (False, None, None, "ValueError: no luck")
    assert repetition_text(mine, [found]).endswith("failed: " + f"{series.dataset}, It: ValueError: no luck")


def test_distances_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in the user's cache may come from an earlier version of the solver."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model = CYCLES.replace("CycleFinder", "PrecomputingCycleFinder")
    _, series, records, context = finished_experiment(tmp_path, model, cells=1)
    (record,) = records
    given: list[Path] = []
    monkeypatch.setattr(PrecomputingCycleFinder, "precompute", lambda self, graphs, cache: given.append(cache))
    repeated(series, record, records, context)
    run_cell(series.first_cells()[0], context)
    (apart, shared) = given
    assert shared == tmp_path / "cache" / "tfgw" / "distances"
    assert not apart.is_relative_to(tmp_path / "cache")

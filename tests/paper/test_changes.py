"""Records that are older than a change of the code: which, how tables mark them, and how they are run again."""

import json
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.paper.small import CYCLES, cell, experiment
from tests.paper.test_runner import ONE
from tfgw.cli import main
from tfgw.paper import changes
from tfgw.paper.changes import Change, changes_since, known_changes, supersedes
from tfgw.paper.experiment import CLASSES, load_experiment, names
from tfgw.paper.machine import versions
from tfgw.paper.plan import plan
from tfgw.paper.records import Record, Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.runner import RerunPolicy, missing, run
from tfgw.paper.series import Options
from tfgw.paper.summary import summarise
from tfgw.paper.tables import caption, table_data, table_rows

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)
FASTER = Change("1a2b3c4d5e", NOON, ("C", "CycleFinder"), "cycles are found faster")


def record(
    finished: str = "2026-03-05T11:59:59+00:00", status: str = "done", versions: Any = None, **fields: Any
) -> Record:
    run = {"finished": finished} | ({"versions": versions} if versions else {})
    return {"cell": cell(**fields).as_dict(), "status": status, "result": {"test_accuracy": 0.5}, "run": run}


def use(monkeypatch: pytest.MonkeyPatch, found: Sequence[Change]) -> None:
    monkeypatch.setattr(changes, "known_changes", lambda: tuple(found))


def test_records_are_older_by_the_date_of_their_code_or_of_their_end() -> None:
    """A cell that ended before the change cannot contain it. One that ended later may have begun with older code."""
    assert FASTER.is_missing_in(record())
    assert not FASTER.is_missing_in(record("2026-03-05T12:00:00+00:00"))
    assert FASTER.is_missing_in(record("2026-03-05T13:00:00+02:00"))
    late = "2026-03-06T00:00:00+00:00"
    assert FASTER.is_missing_in(record(late, versions={"committed": "2026-03-05T12:59:59+01:00"}))
    assert not FASTER.is_missing_in(record(late, versions={"committed": "2026-03-05T12:00:00+00:00"}))
    branch = FASTER._replace(without=("9f8e7d6c5b",))
    assert branch.is_missing_in(record(late, versions={"commit": "9f8e7d6c5b-dirty", "committed": late}))
    assert not branch.is_missing_in(record(late, versions={"commit": "1a2b3c4d5e", "committed": late}))
    without_time = record()
    del without_time["run"]["finished"]
    assert not FASTER.is_missing_in(without_time)


def test_a_change_concerns_some_models_datasets_and_protocols() -> None:
    assert not FASTER.is_missing_in(record(model="a.b:D"))
    some = FASTER._replace(datasets=("PTC_MR", "NCI1"))
    assert [some.is_missing_in(record(dataset=name)) for name in ("MUTAG", "NCI1")] == [False, True]
    some = FASTER._replace(protocols=("fair",))
    assert [some.is_missing_in(record(protocol=name)) for name in ("train-all", "fair")] == [False, True]


def test_which_of_two_records_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is finished, and lacks fewer changes; otherwise the first."""
    use(monkeypatch, [FASTER, FASTER._replace(commit="2b", date=datetime(2026, 3, 7, tzinfo=UTC))])
    oldest, older, newest = (record(f"2026-03-0{day}T00:00:00+00:00") for day in (2, 6, 8))
    assert [len(changes_since(one)) for one in (oldest, older, newest)] == [2, 1, 0]
    assert supersedes(older, oldest)
    assert supersedes(newest, older)
    assert not supersedes(oldest, older)
    assert not supersedes(newest, record("2026-03-09T00:00:00+00:00"))
    failed = record("2026-03-09T00:00:00+00:00", status="failed")
    assert supersedes(oldest, failed)
    assert not supersedes(failed, oldest)


def test_rows_with_older_cells_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In text and data, for each change with the number of cells; later changes come later."""
    mine = experiment(tmp_path, CYCLES)
    (series,) = plan(mine, Options(preset="smoke"))
    records = Records(tmp_path / "results")
    run([series], RunContext(results=records.folder, accelerator="cpu"), ONE)
    latest = datetime(9000, 1, 1, tzinfo=UTC)
    use(monkeypatch, [FASTER._replace(commit="9f", date=latest, note="cycles are longer"), FASTER])
    for number, one in enumerate(series.first_cells()[:7]):
        found = records.get(one)
        run_of = found["run"] | {"finished": "2020-01-01T00:00:00+00:00", "versions": {}}
        records.put(found | {"run": run_of} | ({"status": "failed"} if number > 4 else {}))
    summaries = [(series, summarise(series, records))]
    (entry,) = table_data(summaries)
    assert entry["changes"] == [
        {
            "commit": "1a2b3c4d5e",
            "date": "2026-03-05T12:00:00+00:00",
            "note": "cycles are found faster",
            "cells": 5,
        },
        {"commit": "9f", "date": "9000-01-01T00:00:00+00:00", "note": "cycles are longer", "cells": 38},
    ]
    header, row = table_rows(mine, series.protocol, summaries)
    assert dict(zip(header, row, strict=True))["ours, test"] == "100.0 ± 0.0 †"
    lines = caption(mine, series.protocol, Options(preset="smoke"), summaries)
    assert f"† older than 1a2b3c4d5e (cycles are found faster): {series.dataset}, It (5 of 38)." in lines
    assert f"† older than 9f (cycles are longer): {series.dataset}, It (38 of 38)." in lines
    use(monkeypatch, [])
    assert "†" not in json.dumps(table_rows(mine, series.protocol, [(series, summarise(series, records))]))


def test_older_cells_are_run_again_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (series,) = plan(experiment(tmp_path, CYCLES, presets="folds = 2"), Options(preset="smoke"))
    records, cells = Records(tmp_path / "results"), series.first_cells()
    context = RunContext(results=records.folder, accelerator="cpu")
    run([series], context, ONE)
    use(monkeypatch, [FASTER])
    old = {"finished": "2020-01-01T00:00:00+00:00"}
    for one in cells[2:5]:
        records.put(records.get(one) | {"run": old})
    records.put(records.get(cells[5]) | {"run": old, "status": "failed", "error": "none"})
    assert missing([series], records) == []
    assert missing([series], records, RerunPolicy(changed=True)) == cells[2:5]
    assert missing([series], records, RerunPolicy(failed=True, changed=True)) == cells[2:6]
    assert run([series], context, ONE, rerun=RerunPolicy(changed=True)).done == 3
    assert missing([series], records, RerunPolicy(changed=True)) == []


def test_options_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run --changed` runs older cells again, and `pack --merge-from` takes newer records."""
    monkeypatch.chdir(tmp_path)
    use(monkeypatch, [FASTER])
    mine = experiment(tmp_path, CYCLES)
    (series,) = plan(mine, Options(preset="smoke"))
    for folder, year in (("results", 2020), ("there", 2030)):
        for one in series.first_cells():
            finished = f"{year}-01-01T00:00:00+00:00"
            Records(tmp_path / folder).put(record(finished) | {"cell": one.as_dict()})
    command = ["paper", "run", "mine.toml", "--preset", "smoke", "--jobs", "1", "--dry-run", "--json"]
    for options, count in (([], 0), (["--changed"], 40)):
        assert main([*command, *options]) == 0
        assert json.loads(capsys.readouterr().out)["cells"] == count
    assert main(["paper", "pack", "--merge-from", "there"]) == 0
    capsys.readouterr()
    assert main([*command, "--changed"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 0


def test_records_contain_the_date_of_their_code() -> None:
    found = versions()
    if "commit" not in found:
        pytest.skip("needs a Git checkout")
    shown = subprocess.run(["git", "show", "-s", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert datetime.fromisoformat(found["committed"]).timestamp() == int(shown.stdout)


def test_the_list_of_changes() -> None:
    """It is in order, and names what experiments contain."""
    listed = known_changes()
    assert [change.date for change in listed] == sorted(change.date for change in listed)
    classes = {row.path.rpartition(":")[2] for name in names() for row in load_experiment(name).rows if row.path}
    for change in listed:
        assert all(re.fullmatch("[0-9a-f]{10}", commit) for commit in (change.commit, *change.without))
        assert change.date.tzinfo is not None
        assert change.models
        assert set(change.models) <= classes
        assert set(change.datasets) <= CLASSES.keys()
        assert change.note
        assert not change.note.endswith(".")


def ancestors(commit: str) -> set[str] | None:
    """Abbreviated commits that a commit contains, or ``None`` if it is not in the history."""
    command = ["git", "rev-list", "--abbrev=10", "--abbrev-commit", commit]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return {line[:10] for line in found.stdout.split()} if found.returncode == 0 else None


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a Git checkout")
def test_dates_agree_with_the_history() -> None:
    """Whether a committed record contains a change, by its date and by its commit."""
    history = ancestors("HEAD")
    if history is None or any(change.commit not in history for change in known_changes()):
        pytest.skip("needs the whole history")
    found: dict[str, set[str] | None] = {}
    for one in Records(ROOT / "results"):
        commit = one["run"].get("versions", {}).get("commit", "").removesuffix("-dirty")
        if not commit:
            continue
        contained = found.setdefault(commit, ancestors(commit))
        for change in known_changes() if contained is not None else ():
            concerned = change._replace(date=datetime.max.replace(tzinfo=UTC)).is_missing_in(one)
            assert change.is_missing_in(one) == (concerned and change.commit not in contained), (commit, change)

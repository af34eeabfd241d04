"""Runs: what is chosen and averaged, what fails, and what a kill costs."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.paper.small import (
    CYCLES,
    GRID,
    TFGW,
    cell,
    experiment,
    in_process,
    wait_until,
    without_times,
    write_experiment,
)
from tests.paper.test_protocols import write_splits
from tfgw.paper.engines import Allocation, allocate
from tfgw.paper.experiment import UNITS, load_experiment
from tfgw.paper.plan import plan
from tfgw.paper.protocols import Fair
from tfgw.paper.records import Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.runner import Progress, RerunPolicy, forecast, known, missing, run
from tfgw.paper.series import Options
from tfgw.paper.summary import summarise
from tfgw.paper.time_estimates import TimeEstimates

ROOT = Path(__file__).parents[2]
SMOKE = Options(preset="smoke")
ONE = Allocation(jobs=1, threads=1, gpu=0.0)
TWO = Allocation(jobs=2, threads=1, gpu=0.0)


def context(folder: Path) -> RunContext:
    return RunContext(results=folder / "results", accelerator="cpu")


def test_fair_chooses_by_validation_and_runs_again(tmp_path: Path) -> None:
    """One run of each configuration, then the final runs of the one with the best validation accuracy."""
    series = plan(experiment(tmp_path, GRID), SMOKE)
    outcome = run(series, context(tmp_path), ONE)
    assert outcome == (10 * 3 + 10 * 4, [], 0, 70)
    records = Records(tmp_path / "results")
    assert {series[0].protocol.chosen(series[0], fold, records)["wrong"] for fold in range(10)} == {0.2}
    summary = summarise(series[0], records)
    assert (summary.test, summary.deviation, summary.units) == (1.0, 0.0, 10)
    assert summary.validation == pytest.approx(0.8)
    assert run(series, context(tmp_path), ONE) == (0, [], 0, 70)


def test_fair_chooses_among_those_that_did_not_fail(tmp_path: Path) -> None:
    """Also if nothing of the validation graphs is right; of equal ones the first; none if one has no record yet."""
    (series,) = plan(experiment(tmp_path, GRID), SMOKE)

    def chosen(*accuracies: float | None) -> float | None:
        records = Records(tmp_path / str(accuracies))
        cells = [one for one in series.first_cells() if one.fold == 3]
        for one, accuracy in zip(cells, accuracies, strict=False):
            outcome = {"status": "failed"} if accuracy is None else {"status": "done"}
            records.put({"cell": one.as_dict(), **outcome, "result": {"validation_accuracy": accuracy}, "run": {}})
        found = series.protocol.chosen(series, 3, records)
        return None if found is None else found["wrong"]

    assert [configuration["wrong"] for configuration in series.configurations] == [0.5, 0.2, 0.3]
    assert chosen(0.1, 0.6, 0.7) == 0.3
    assert chosen(0.6, 0.8, 0.8) == 0.2
    assert chosen(None, None, 0.0) == 0.3
    assert chosen(None, None, None) is None
    assert chosen(0.9, 0.8) is None


def test_paper_chooses_for_each_holdout(tmp_path: Path) -> None:
    changes = {"protocol": "paper", "presets": "holdouts = 2\nfolds = 10"}
    series = plan(experiment(tmp_path, GRID, **changes), SMOKE)
    assert run(series, context(tmp_path), ONE).done == 2 * 3 * 10
    summary = summarise(series[0], Records(tmp_path / "results"))
    assert (summary.units, summary.over, summary.test, summary.fold_deviation) == (2, "hold-outs", 1.0, 0.0)
    row = series[0].protocol.row(series[0], summary._replace(fold_deviation=0.125), UNITS["percent"])
    assert row[3] == "100.0 ± 0.0 (12.5)"
    assert summary.validation == pytest.approx(0.8)


def test_splits_from_a_file(tmp_path: Path) -> None:
    """Cells of published splits are other cells, and their parts are those of the file."""
    folds = Fair().folds(np.arange(40) % 2, seed=5)
    path = write_splits(tmp_path / "splits.json", folds)
    mine = experiment(tmp_path, CYCLES)
    options = Options(preset="smoke", splits=path)
    series = plan(mine, options)
    assert run(series, RunContext(results=tmp_path / "results", splits=path), ONE).done == 40
    assert len(missing(plan(mine, SMOKE), Records(tmp_path / "results"))) == 40
    results = [record["result"] for record in Records(tmp_path / "results")]
    assert {(r["train_graphs"], r["validation_graphs"], r["test_graphs"]) for r in results} == {(32, 4, 4)}


def test_groups_reach_the_cells(tmp_path: Path) -> None:
    """Cycles and paths of 4 to 6 nodes with labels are six kinds of graphs: ten folds of them cannot be filled."""
    series = plan(experiment(tmp_path, CYCLES), Options(preset="smoke", grouped=True))
    outcome = run(series, context(tmp_path), ONE)
    assert outcome.done + len(outcome.failed) == 40
    assert outcome.failed  # a fold without graphs of its own says so


@pytest.mark.slow
def test_a_pack_beside_a_run_makes_it_drop_nothing(tmp_path: Path) -> None:
    """The final runs depend on records of others, which move meanwhile."""
    series = plan(experiment(tmp_path, GRID), SMOKE)

    def pack() -> None:
        while True:
            Records(context(tmp_path).results).pack()
            time.sleep(0.03)

    packing = in_process(pack)
    try:
        assert run(series, context(tmp_path), ONE) == (70, [], 0, 70)
    finally:
        os.kill(packing, signal.SIGKILL)
        os.waitpid(packing, 0)


@pytest.mark.slow
def test_a_failing_cell_stops_no_other(tmp_path: Path) -> None:
    """Neither one that raises an error nor one that ends the process it runs in."""
    grid = CYCLES + 'grid = { quick = { error = ["no luck", "exit"], wrong = [0.1] } }\n'
    series = plan(experiment(tmp_path, grid, protocol="paper", presets="holdouts = 1\nfolds = 1"), SMOKE)
    outcome = run(series, context(tmp_path), TWO)
    errors = sorted(record["error"] for record in outcome.failed)
    assert outcome.done == 0
    assert errors == ["ValueError: no luck", "its process was killed, possibly because it ran out of memory"]
    assert [cell.configuration["error"] for cell in missing(series, Records(tmp_path / "results"))] == ["exit"]
    assert len(missing(series, Records(tmp_path / "results"), RerunPolicy(failed=True))) == 2


def test_cells_that_are_run_again(tmp_path: Path) -> None:
    """Those without a record, those that were killed, and failed ones on demand; each once."""
    (series,) = plan(experiment(tmp_path, CYCLES, presets="folds = 1"), SMOKE)
    records, cells = Records(tmp_path / "results"), series.first_cells()
    assert len(cells) == 4
    outcomes = ({"status": "done"}, {"status": "failed"}, {"status": "failed", "killed": True})
    for one, outcome in zip(cells, outcomes, strict=False):
        records.put({"cell": one.as_dict(), "run": {}, **outcome})
    assert missing([series, series], records) == [cells[2], cells[3]]
    assert missing([series], records, RerunPolicy(failed=True)) == cells[1:]
    assert [record["status"] for record in known([series, series], records)] == ["done", "failed", "failed"]


def test_failed_cells_are_told_and_not_run_again_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = f'{CYCLES}fixed = {{ error = "no luck" }}\n'
    series = plan(experiment(tmp_path, wrong, presets="folds = 2"), SMOKE)
    times = []
    for options in ({}, {}, {"rerun": RerunPolicy(failed=True)}):
        outcome = run(series, context(tmp_path), ONE, **options)
        assert (outcome.done, outcome.missing, outcome.total) == (0, 0, 8)
        assert [record["error"] for record in outcome.failed] == ["ValueError: no luck"] * 8
        times.append([record["run"]["seconds"] for record in outcome.failed])
    assert times[0] == times[1] != times[2]
    assert capsys.readouterr().err == ""
    (record, *_) = outcome.failed
    assert "raise ValueError(self.error)" in record["traceback"]


def test_a_bar_counts_cells_that_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten cells begin, six come later, and four were done before: of 20."""
    cells = [cell(fold=fold) for fold in range(10)]
    progress = Progress(20, TimeEstimates(), 2, visible=True)
    progress.begin(cells, recorded=4)
    assert " 4/20 cells [" in capsys.readouterr().err.split("\r")[-1]
    progress.end({"cell": cells[3].as_dict(), "status": "failed", "run": {"seconds": 30.0}})
    assert " 5/20 cells [" in (shown := capsys.readouterr().err.split("\r")[-1])
    assert "last: MUTAG, failed" in shown
    progress.begin([], recorded=20)
    assert progress.remaining() == "done"
    assert "20/20 cells" in capsys.readouterr().err.split("\r")[-1]
    progress.close()


def test_a_run_without_cells_has_nothing_to_show() -> None:
    progress = Progress(0, TimeEstimates(), 1, visible=False)
    progress.begin([], recorded=0)
    assert progress.remaining() == "done"


def test_forecast(tmp_path: Path) -> None:
    """Nothing is known at first; afterwards, what is left is estimated from what was measured."""
    mine = experiment(tmp_path, CYCLES)
    series, records = plan(mine, SMOKE), Records(tmp_path / "results")
    assert forecast(series, records) == (40, (0.0, 0.0, 40, {}))
    (tmp_path / "grid").mkdir()
    assert forecast(plan(experiment(tmp_path / "grid", GRID), SMOKE), records) == (30 + 40, (0.0, 0.0, 30, {}))
    run(series, context(tmp_path), ONE)
    assert forecast(series, records) == (0, (0.0, 0.0, 0, {}))
    ahead = forecast(plan(mine, Options(preset="quick")), Records(tmp_path / "results"))
    assert ahead.cells == 0  # ten folds, three runs: done


def test_cells_that_are_not_known_yet_are_expected_to_take_as_long(tmp_path: Path) -> None:
    series, records = plan(experiment(tmp_path, GRID), SMOKE), Records(tmp_path / "results")
    for one in series[0].first_cells()[:6]:
        records.put(
            {
                "cell": one.as_dict(),
                "status": "done",
                "result": {"validation_accuracy": 0.5},
                "run": {"seconds": 2.0, "threads": 1},
            }
        )
    ahead = forecast(series, records)
    assert (ahead.cells, ahead.time.unknown) == (24 + 40, 0)
    assert ahead.time.seconds == pytest.approx(64 * 2.0, rel=0.05)  # most have another configuration


def test_remaining_time(tmp_path: Path) -> None:
    """Two of ten cells of 30 s are done, two at a time; ten more come later. One of another model is not guessed."""
    cells = [cell(fold=fold) for fold in range(10)]
    progress = Progress(20, TimeEstimates(), 2, visible=False)
    progress.begin(cells, recorded=0)
    assert progress.remaining() == "time left: unknown"
    for one in cells[:2]:
        progress.end({"cell": one.as_dict(), "status": "done", "run": {"seconds": 30.0}})
    assert progress.remaining() == "time left: about 4 min"  # (8 + 10) · 30 s / 2
    progress.begin([*cells[2:], cell(model="a.b:Other")], recorded=11)
    assert progress.remaining() == "time left: about 2 min and 1 cells of unknown duration"


def test_a_machine_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more threads than cores; on GPUs as many cells as fit, or as many as were asked for."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.setattr("tfgw.paper.engines._gpus", list)
    assert allocate(100, jobs=None, accelerator="auto", per_gpu=None) == (8, 1, 0.0)
    assert allocate(100, jobs=3, accelerator="cpu", per_gpu=None) == (3, 2, 0.0)
    assert allocate(1, jobs=None, accelerator="cpu", per_gpu=None) == (1, 8, 0.0)
    with pytest.raises(ValueError, match="there is no GPU"):
        allocate(1, jobs=None, accelerator="cuda", per_gpu=None)
    monkeypatch.setattr("tfgw.paper.engines._gpus", lambda: [13 * 2**30, 9 * 2**30])
    assert allocate(100, jobs=None, accelerator="auto", per_gpu=None) == (4, 2, 0.5)
    assert allocate(100, jobs=None, accelerator="cuda", per_gpu=3) == (6, 1, 1 / 3)
    assert allocate(100, jobs=None, accelerator="cpu", per_gpu=None) == (8, 1, 0.0)


def command(path: Path, folder: Path, *options: str) -> list[str]:
    where = ["--results", str(folder), "--accelerator", "cpu", "--preset", "smoke"]
    return [sys.executable, "-m", "tfgw.cli", "paper", "run", str(path), "--trust", *where, *options]


def start(arguments: list[str]) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def processes_of(session: int) -> list[int]:
    """All processes of a session that are alive, by ``/proc``."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own_session = status.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(own_session) == session and state != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_killed_ten_times(tmp_path: Path, seed: int) -> None:
    """A run of 40 cells, of which a process (main or worker) is killed ten times, has the records of a quiet run."""
    path = write_experiment(tmp_path, TFGW)
    series = plan(load_experiment(str(path)), SMOKE)
    assert run(series, RunContext(results=tmp_path / "quiet", accelerator="cpu"), ONE).done == 40
    rng, folder, running, kills = random.Random(seed), tmp_path / "killed", None, 0
    while kills < 10:
        if running is None or running.poll() is not None:
            running = start(command(path, folder, "--jobs", "2"))
        written = count(folder)
        wait_until(lambda: count(folder) > written or running.poll() is not None, seconds=100)  # noqa: B023
        if count(folder) >= 40:
            break
        alive = processes_of(running.pid)
        if alive:
            os.kill(rng.choice(alive), signal.SIGKILL)
            kills += 1
    if running.poll() is None:
        running.wait(timeout=100)
    assert start(command(path, folder, "--jobs", "2")).wait(timeout=100) == 0
    assert kills == 10
    assert without_times(iter(Records(folder))) == without_times(iter(Records(tmp_path / "quiet")))
    assert len(list(Records(folder))) == 40


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
@pytest.mark.parametrize("at", ["start", "work"])
def test_workers_end_with_a_run_that_is_killed(tmp_path: Path, at: str) -> None:
    """Whether they were starting or in the middle of their cells, no worker outlives the run."""
    at_work = tmp_path / "at_work"
    path = write_experiment(tmp_path, CYCLES + f'fixed = {{ error = "hang {at_work}" }}')
    running = start(command(path, tmp_path / "killed", "--jobs", "2"))
    try:
        wait_until(at_work.exists if at == "work" else lambda: len(processes_of(running.pid)) >= 4)
        running.kill()
        running.wait()
        wait_until(lambda: not processes_of(running.pid), seconds=30)
    finally:
        for process in processes_of(running.pid):
            os.kill(process, signal.SIGKILL)


def count(folder: Path) -> int:
    return len(list(folder.rglob("[!.]*.json")))


def test_part_of_a_dataset(tmp_path: Path) -> None:
    """A preset that limits the graphs draws both classes in proportion, and names the number in its cells."""
    series = plan(experiment(tmp_path, CYCLES, presets="folds = 2\ngraphs = 20"), SMOKE)
    run(series, context(tmp_path), ONE)
    for record in Records(tmp_path / "results"):
        result = record["result"]
        assert result["train_graphs"] + result["validation_graphs"] + result["test_graphs"] == 20
        assert record["cell"]["graphs"] == 20


def test_cells_of_a_whole_dataset_do_not_mention_its_size(tmp_path: Path) -> None:
    cells = plan(experiment(tmp_path, CYCLES), SMOKE)[0].first_cells()
    assert not any("graphs" in one.as_dict() for one in cells)

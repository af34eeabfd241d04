"""``tfgw predict`` and ``tfgw embed`` on files of any size: killed at any moment, they continue where they were."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.streams import random_trees, small_trained, write_json_lines, write_tu
from tfgw.cli import main

pytestmark = pytest.mark.usefixtures("workplace")

KILLS = int(os.environ.get("TFGW_KILLS", "1"))
TABLES = random_trees(400)


@pytest.fixture
def model(workplace: Path) -> Path:
    small_trained(TABLES, workplace / "model.safetensors")
    return workplace / "model.safetensors"


def test_answers_in_a_file_are_those_that_are_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu(TABLES, Path("folder"))
    printed = {}
    for command in ("predict", "embed"):
        arguments = [command, str(model), "--dataset", str(folder.resolve()), "--json"]
        assert main(arguments) == 0
        printed[command] = json.loads(capsys.readouterr().out)
        assert main([*arguments, "--output", f"{command}.jsonl", "--batch-size", "37"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "dataset": "trees",
            "unseen_labels": None,
            "num_graphs": 400,
            "output": f"{command}.jsonl",
        }
    rows = [json.loads(line) for line in Path("predict.jsonl").read_text().splitlines()]
    assert rows == printed["predict"]["predictions"]
    rows = [json.loads(line) for line in Path("embed.jsonl").read_text().splitlines()]
    assert [row["graph"] for row in rows] == printed["embed"]["graphs"]
    assert [[row[f"template_{number}"] for number in range(3)] for row in rows] == printed["embed"]["distances"]


def test_an_error_in_a_late_line_is_one_line_and_leaves_nothing(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_json_lines(TABLES, Path("trees.jsonl"))
    path.write_text(path.read_text() + "{\n")
    arguments = ["predict", str(model), "--dataset", str(path), "--output", "out/answers.csv", "--batch-size", "50"]
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tfgw: error: ")
    assert "trees.jsonl, line 401: not JSON" in line
    assert not [name for name in os.listdir("out") if not name.endswith(".lock")]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert main(arguments) == 0


def test_a_gpu_that_is_not_there_is_an_error(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    path = write_json_lines(TABLES, Path("trees.jsonl"))
    assert main(["embed", str(model), "--dataset", str(path), "--accelerator", "cuda"]) == 1
    assert capsys.readouterr().err == "tfgw: error: accelerator: PyTorch finds no GPU; use 'cpu' or 'auto'\n"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv"] if KILLS == 1 else ["csv", "jsonl", "parquet"])
def test_killed_at_any_moment_it_continues(model: Path, suffix: str) -> None:
    """Several kills in one run; TFGW_KILLS says how many. Rows are neither lost nor doubled, nor is a byte changed."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    rng = random.Random(3)
    path, output = write_json_lines(random_trees(1000 * KILLS), Path("trees.jsonl")), Path(f"answers.{suffix}")
    # One graph at a time, so that the run takes long enough to be killed in the middle.
    options = ["--dataset", str(path), "--batch-size", "1", "--accelerator", "cpu", "--workers", "1"]
    command = [sys.executable, "-m", "tfgw", "predict", str(model), *options, "--output"]
    kills, seen = 0, 0
    while kills < KILLS:
        process = subprocess.Popen([*command, str(output)], stdout=subprocess.DEVNULL)
        while process.poll() is None and progress(output) <= seen:
            time.sleep(0.02)
        time.sleep(rng.random() / 4)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills, seen = kills + 1, progress(output)
        assert not output.exists()
    assert kills
    if not output.exists():
        subprocess.run([*command, str(output)], check=True, stdout=subprocess.DEVNULL)
    main([*command[3:], f"whole.{suffix}"])
    assert output.read_bytes() == Path(f"whole.{suffix}").read_bytes()
    assert {name for name in os.listdir() if name.startswith("answers")} == {output.name}


def progress(output: Path) -> int:
    """Graphs whose rows count so far."""
    try:
        return int(json.loads(Path(f"{output}.state").read_text())["graphs"])
    except OSError:
        return 0

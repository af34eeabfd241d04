"""The folder of a run: what it records, how it is continued, and when it is not there."""

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import QUICK, write_tu_folder
from tests.cli.test_new_graphs import answer, failure
from tfgw.cli import main
from tfgw.train import Preprocessing, trainer
from tfgw.train.tensor_file import read_tensors

pytestmark = pytest.mark.usefixtures("workplace")

PAPER = ["--recipe", "paper", "--accelerator", "cpu", "--validation", "0"]


@pytest.fixture
def folder(workplace: Path) -> str:
    return str(write_tu_folder(workplace / "MINE"))


def weights(run: str) -> dict:
    return {name: t.tolist() for name, t in read_tensors(Path(run) / "model.safetensors", kind="model")[0].items()}


def test_a_run_is_extended(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["train", "--dataset", folder, *PAPER]
    whole = answer(capsys, *data, "--epochs", "5", "--output", "whole")
    first = answer(capsys, *data, "--epochs", "2", "--output", "parts")
    extended = answer(capsys, "train", "--resume", "parts", "--epochs", "5")
    assert (first["epochs"], extended["epochs"], whole["epochs"]) == (2, 5, 5)
    assert extended["seconds"] > first["seconds"] > 0
    assert weights("parts") == weights("whole")
    assert json.loads(Path("parts/run.json").read_text())["epochs"] == 5


def test_times_add_up(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(trainer.time, "monotonic", lambda: float(next(clock)))
    data = ["train", "--dataset", folder, *PAPER]
    one = answer(capsys, *data, "--epochs", "1", "--output", "run")["seconds"]
    assert one > 0
    assert answer(capsys, "train", "--resume", "run", "--epochs", "4")["seconds"] == pytest.approx(4 * one, rel=0.5)


def test_other_options_cannot_be_changed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "train", "--dataset", folder, *QUICK, "--seed", "3", "--output", "run")
    before = Path("run/run.json").read_text()
    said = failure(capsys, "train", "--resume", "run", "--lr", "0.5", "--seed", "0", "--batch-size", "8")
    assert said == (
        "--resume run: the run has --batch-size its default and --lr its default and --seed 3, which cannot be changed"
        " to 8 and 0.5 and 0; leave out --batch-size, --lr, --seed"
    )
    assert "--epochs cannot be changed" in failure(capsys, "train", "--resume", "run", "--epochs", "9")
    assert Path("run/run.json").read_text() == before
    same = ["--seed", "3", "--dataset", folder, *QUICK, "--checkpoint-seconds", "5"]
    assert answer(capsys, "train", "--resume", "run", *same)["epochs"] == 2
    assert "not the folder of a run" in failure(capsys, "train", "--resume", "nowhere")


def test_a_failure_before_training_leaves_nothing_behind(
    folder: str, workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = Preprocessing.fit

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(Preprocessing, "fit", fail)
    (workplace / "empty").mkdir()
    for options in ([], ["--output", "new/run"], ["--output", "empty"]):
        assert main(["train", "--dataset", folder, *QUICK, *options]) == 1
        assert capsys.readouterr().err.splitlines()[-1] == "tfgw: error: no"
    assert {path.name for path in workplace.iterdir()} - {"cache"} == {"MINE", "empty"}
    assert not any((workplace / "empty").iterdir())
    monkeypatch.setattr(Preprocessing, "fit", fit)
    assert main(["train", "--dataset", folder, *QUICK, "--output", "new/run"]) == 0


def test_the_folder_of_the_data_is_recorded(
    folder: str, workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGW_DATA", str(workplace))
    answer(capsys, "train", "--dataset", "MINE", *QUICK, "--output", "run")
    monkeypatch.delenv("TFGW_DATA")
    assert json.loads(Path("run/run.json").read_text())["data_dir"] == str(workplace)
    monkeypatch.chdir(workplace.parent)
    assert answer(capsys, "evaluate", str(workplace / "run"))["graphs"] == 2


def test_class_weights_do_not_change_which_data_it_was(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (Path(folder) / "MINE_graph_labels.txt").read_text().splitlines()
    (Path(folder) / "MINE_graph_labels.txt").write_text("\n".join([*["3"] * 12, *lines[12:]]) + "\n")
    answer(capsys, "train", "--dataset", folder, *QUICK, "--class-weight", "balanced", "--output", "run")
    assert answer(capsys, "evaluate", "run")["graphs"] == 2

"""``tfgw report``, and the report at the end of ``tfgw train``."""

import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import QUICK, answer, write_tu_folder
from tfgw.cli import main


@pytest.fixture
def run(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = write_tu_folder(workplace / "MINE")
    answer(capsys, "train", "--dataset", str(folder), "--test", "0.3", *QUICK, "--output", "run")
    return workplace / "run"


def test_report_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of the run is in it: history and options, and the graph that was asked for."""
    found = answer(capsys, "report", "run", "--graph", "2")
    text = (run / "report.html").read_text()
    assert found == {"report": "run/report.html", "bytes": len(text.encode())}
    assert "Graph 2: " in text
    assert "no training history" not in text
    assert "Training options" in text


def test_report_on_other_graphs(run: Path, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_tu_folder(workplace / "OTHER", graphs=9)
    answer(
        capsys, "report", "run/model.safetensors", "--dataset", str(other), "--output", "other.html", "--map", "tsne"
    )
    assert "TFGW report: OTHER" in Path("other.html").read_text()


def test_errors_are_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "run", "--graph", "nobody"]) == 1
    assert capsys.readouterr().err.startswith("tfgw: error: --graph nobody: no such graph")
    assert not (run / "report.html").exists()


def test_training_ends_with_a_report(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--dataset", str(write_tu_folder(workplace / "MINE")), *QUICK, "--report"]
    assert main([*command, "--output", "run"]) == 0
    out, err = capsys.readouterr()
    assert (workplace / "run" / "report.html").is_file()
    assert "run/report.html" in out
    assert "report" not in err


def test_training_without_the_extra_says_how_to_get_it(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = ["train", "--dataset", str(write_tu_folder(workplace / "MINE")), *QUICK, "--report"]
    assert main([*command, "--output", "run"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "report" in line]
    assert lines == ["tfgw: no report: matplotlib is not installed; pip install 'tfgw[report]'"]
    assert main(["report", "run"]) == 1
    assert "pip install 'tfgw[report]'" in capsys.readouterr().err

"""Tables of molecules from training to answers that are joined with their rows."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.test_cli import write_tu_folder
from tests.cli.test_new_graphs import answer, failure
from tests.datasets.molecule_files import molecules, write_csv, write_parquet
from tfgw.cli import main

pytest.importorskip("rdkit")
pytestmark = pytest.mark.usefixtures("workplace")

QUICK = ["--epochs", "3", "--accelerator", "cpu", "--templates", "4", "--template-nodes", "5"]
COLUMNS = ["--smiles", "SMILES", "--target", "aromatic", "--id", "name"]


@pytest.fixture
def run(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    rows = molecules(40)
    rows[7]["SMILES"], rows[11]["aromatic"] = "C(C)(C)(C)(C)C", None
    write_csv(workplace / "mols.csv", rows)
    assert main(["train", "--dataset", "mols.csv", *COLUMNS, *QUICK, "--output", "run"]) == 0
    said = capsys.readouterr().err
    assert (
        "tfgw: warning: mols.csv: 1 of 40 rows cannot be read and is skipped: row 7: not a valid molecule, Explicit"
        in said
    )
    assert "and 1 of 40 rows has no target and is skipped" in said
    return workplace / "run"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_answers_are_joined_by_identifier(
    run: Path, workplace: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    rows = molecules(40)
    chosen = [rows[number] for number in (31, 4, 11, 7, 22)]
    chosen[3]["SMILES"] = "not a molecule"
    new = [{"name": row["name"], "SMILES": row["SMILES"]} for row in chosen]  # no targets, another order
    {"csv": write_csv, "parquet": write_parquet}[suffix](workplace / f"new.{suffix}", new)
    whole = {row["id"]: row for row in answer(capsys, "predict", "run", "--dataset", "mols.csv")["predictions"]}
    assert len(whole) == 39
    assert whole["mol-11"]["label"] is None
    assert whole["mol-4"]["label"] == rows[4]["aromatic"]
    assert main(["predict", "run", "--dataset", f"new.{suffix}", "--output", "answers.csv"]) == 0
    assert "1 of 5 rows cannot be read" in capsys.readouterr().err
    with Path("answers.csv").open(newline="") as stream:
        answers = {row["id"]: row for row in csv.DictReader(stream)}
    assert list(answers) == ["mol-31", "mol-4", "mol-11", "mol-22"]
    for name, row in answers.items():
        assert float(row["probability_1"]) == whole[name]["probability_1"]
        assert row["label"] == ""
    embedded = answer(capsys, "embed", "run", "--dataset", f"new.{suffix}")
    assert embedded["ids"] == list(answers)


def test_a_run_knows_its_own_table(run: Path, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "evaluate", "run")["graphs"] == 4
    assert answer(capsys, "evaluate", "run", "--all")["graphs"] == 38
    copy = (workplace / "mols.csv").read_text().replace("SMILES", "smiles", 1)
    (workplace / "copy.csv").write_text(copy)
    assert "no column 'SMILES'" in failure(capsys, "predict", "run", "--dataset", "copy.csv")
    assert len(answer(capsys, "predict", "run", "--dataset", "copy.csv", "--smiles", "smiles")["predictions"]) == 39


def test_whole_numbers_are_values_if_asked(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(workplace / "mols.csv", molecules(20))
    found = answer(capsys, "train", "--dataset", "mols.csv", *COLUMNS, *QUICK, "--task", "regression")
    assert "train_negative_mse" in found
    entries = answer(capsys, "predict", found["folder"], "--dataset", "mols.csv")["predictions"]
    assert {entry["target"] for entry in entries} == {0.0, 1.0}


def test_errors(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(workplace / "mols.csv", molecules(6))
    train = ["train", "--dataset", "mols.csv", *QUICK]
    assert "specify the column of SMILES strings" in failure(capsys, *train)
    assert "specify the column of targets" in failure(capsys, *train, "--smiles", "SMILES")
    assert "no column 'activity'" in failure(capsys, *train, "--smiles", "SMILES", "--target", "activity")
    assert "is not a CSV or Parquet file" in failure(capsys, "train", "--dataset", "./mols", "--smiles", "SMILES")
    assert not (workplace / "runs").exists()
    assert answer(capsys, "datasets", "mols.csv", *COLUMNS)[0]["graphs"] == 6


def test_a_folder_of_graphml(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.datasets.test_graphml import write

    write(workplace / "mine", 20)
    answer(capsys, "train", "--dataset", "./mine", *QUICK, "--output", "run")
    (workplace / "some").mkdir()
    for number in (5, 2):
        (workplace / "some" / f"g{number}.graphml").write_text((workplace / "mine" / f"g{number}.graphml").read_text())
    whole = {entry["id"]: entry for entry in answer(capsys, "predict", "run", "--dataset", "./mine")["predictions"]}
    some = answer(capsys, "predict", "run", "--dataset", "./some")["predictions"]
    assert [entry["id"] for entry in some] == ["g2", "g5"]
    assert [entry["probability_odd"] for entry in some] == [whole[name]["probability_odd"] for name in ("g2", "g5")]
    assert json.loads((workplace / "run" / "results.json").read_text())["features"].startswith("2 node attributes and")


@pytest.mark.parametrize("value", ["nan", "inf", "1e400"])
def test_attributes_that_are_not_numbers(workplace: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    folder = write_tu_folder(workplace / "MINE")
    nodes = len((folder / "MINE_node_labels.txt").read_text().splitlines())
    (folder / "MINE_node_attributes.txt").write_text("".join(f"{i}, {i}\n" for i in range(nodes - 1)) + f"1, {value}\n")
    said = failure(capsys, "train", "--dataset", str(folder), *QUICK)
    assert f"MINE_node_attributes.txt, line {nodes}: expected 2 comma-separated finite numbers, found" in said
    assert not (workplace / "runs").exists()


def test_ten_thousand_classes(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(workplace / "many.csv", [{"SMILES": "CO", "y": f"name-{number}"} for number in range(10_000)])
    train = ["train", "--dataset", "many.csv", "--smiles", "SMILES", "--target", "y", "--epochs", "1"]
    assert "test: 1000 of 10000 graphs cannot include all 10000 classes" in failure(capsys, *train)
    assert "10,000 classes would need 20,000 templates" in failure(capsys, *train, "--test", "0")
    assert not (workplace / "runs").exists()


def test_a_huge_molecule_is_left_out(run: Path, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "huge", "SMILES": "C" * 100_000}, {"name": "small", "SMILES": "CCO"}]
    write_csv(workplace / "huge.csv", rows)
    assert main(["predict", "run", "--dataset", "huge.csv", "--output", "answers.jsonl"]) == 0
    assert "row 0: 100,000 characters, too many for 1,000 atoms" in capsys.readouterr().err
    assert [json.loads(line)["id"] for line in Path("answers.jsonl").read_text().splitlines()] == ["small"]

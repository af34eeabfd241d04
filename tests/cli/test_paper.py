"""``tfgw paper`` as a user meets it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_cli import write_tu_folder
from tests.paper.small import CYCLES, cell, write_experiment
from tfgw.cli import main
from tfgw.paper.experiment import load_experiment, names
from tfgw.paper.records import Records
from tfgw.paper.trust import check_trusted


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment of the user's own, in a working directory and with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return str(write_experiment(tmp_path, CYCLES + 'note = "knows the answer"'))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    """What a command prints with ``--json``."""
    assert main(["paper", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_list_names_tables_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    found = {entry["name"]: entry for entry in answer(capsys, "list")}
    assert {"table1", "table2", "table3", "table4", "table5", "fig-pca", "fig-templates"} <= found.keys()
    assert {"tfgw-adj", "gin", "dropgin"} <= set(found["table2"]["models"])


def test_run_show_pack(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = [mine, "--preset", "smoke"]
    ahead = answer(capsys, "run", *options, "--dry-run", "--jobs", "1")
    assert (ahead["cells"], ahead["unknown"], ahead["jobs"]) == (40, 40, 1)
    assert not Path("results").exists()
    assert answer(capsys, "run", *options, "--jobs", "1", "--trust")["ran"] == 40
    assert answer(capsys, "run", *options, "--jobs", "1", "--trust")["ran"] == 0
    (row,) = answer(capsys, "show", *options)
    assert (row["test"], row["validation"], row["done"], row["total"], row["over"]) == (1.0, 1.0, 40, 40, "folds")
    assert answer(capsys, "pack") == {"records": 40}
    assert answer(capsys, "show", *options) == [row]
    main(["paper", "show", *options])
    text = capsys.readouterr().out
    assert "Protocol `fair`, preset `smoke`; 40 of 40 cells done." in text
    assert "It: knows the answer." in text
    assert "not a result" in text  # said of the validation accuracy
    main(["paper", "show", *options, "--markdown"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## mine."
    header = next(line for line in lines if line.startswith("| dataset"))
    assert [header.split(" | ")[3], header.split(" | ")[5]] == ["ours, test", "validation"]


def test_pack_merges_other_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(["results", "there", "elsewhere"]):
        Records(Path(folder)).put({"cell": cell(fold=number).as_dict(), "status": "done", "run": {}})
    assert answer(capsys, "pack", "--merge-from", "there", "--merge-from", "elsewhere") == {"records": 3}
    assert len(list(Records(Path("results")))) == 3


def test_show_only_what_is_done(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(mine)
    other = '[[rows]]\nmodel = "other"\ntitle = "Other"\nclass = "tests.paper.small:Other"\n'
    path.write_text(f"{path.read_text()}\n{other}")
    options = [mine, "--preset", "smoke"]
    assert main(["paper", "show", *options, "--done"]) == 1
    assert "no cell is finished" in capsys.readouterr().err
    assert answer(capsys, "run", *options, "--model", "it", "--jobs", "1", "--trust")["ran"] == 40
    assert [row["model"] for row in answer(capsys, "show", *options)] == ["it", "other"]
    assert [row["model"] for row in answer(capsys, "show", *options, "--done")] == ["it"]


@pytest.mark.parametrize(
    ("model", "preset", "said"), [("gin", "quick", True), ("gin", "full", False), ("wl", "quick", False)]
)
def test_show_says_where_training_is_shorter(
    model: str, preset: str, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "show", "table2", "--dataset", "MUTAG", "--model", model, "--preset", preset]) == 0
    assert ("fewer `epochs` than the paper's 500" in capsys.readouterr().out) is said


def test_failures_are_reported(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(mine)
    path.write_text(path.read_text() + 'fixed = { error = "no luck" }\n')
    command = ["paper", "run", mine, "--preset", "smoke", "--jobs", "1", "--trust"]
    assert main(command) == 1
    assert "40 cells failed; use --retry-failed to run them again" in capsys.readouterr().out
    path.write_text(path.read_text().replace("no luck", "none"))
    assert main(["paper", "show", mine, "--preset", "smoke"]) == 0


def test_a_full_gpu(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's message lists every process on the GPU: its beginning is enough, and what to do."""
    path = Path(mine)
    path.write_text(path.read_text() + 'fixed = { error = "full" }\n')
    command = ["paper", "run", mine, "--preset", "smoke", "--jobs", "1", "--trust"]
    assert main(command) == 1
    *_, failed, last = capsys.readouterr().out.strip().splitlines()
    assert ": OutOfMemoryError: CUDA out of memory. A process" in failed
    assert len(failed.partition("OutOfMemoryError")[2]) < 200
    assert last == "40 cells failed; use --retry-failed to run them again, and --per-gpu N to run fewer cells per GPU"
    assert main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"][0]["error"].count("memory in use") == 100


def test_what_is_missing_is_said_once(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before any work, not as a failure of every cell."""
    path = Path(mine)
    text = path.read_text()
    path.write_text(text.replace("small:CycleFinder", "small:Nobody"))
    assert main(["paper", "run", mine, "--preset", "smoke", "--trust"]) == 1
    assert "class 'tests.paper.small:Nobody': cannot be imported" in capsys.readouterr().err
    path.write_text(text.replace("/shapes", "/shades"))
    assert main(["paper", "run", mine, "--preset", "smoke", "--trust"]) == 1
    assert "shades" in capsys.readouterr().err
    Path("splits.json").write_text("[]")
    path.write_text(text)
    assert main(["paper", "run", mine, "--preset", "smoke", "--splits", "splits.json", "--trust"]) == 1
    assert "splits.json: expected 10 folds, found 0" in capsys.readouterr().err
    assert not Path("results").exists()


def test_code_of_others_is_run_only_if_it_is_trusted(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(mine)
    path.write_text(path.read_text().replace("tests.paper.small:CycleFinder", "intruder:Intruder"))
    Path("intruder.py").write_text("from pathlib import Path\nPath('came in').touch()\n")
    code = "import sys; from tfgw.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "paper", "run", mine, "--preset", "smoke", "--jobs", "1"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        "tfgw: error: experiment mine: names 'intruder:Intruder', which is not part of tfgw"
    )
    assert not Path("came in").exists()
    subprocess.run([*command, "--trust"], capture_output=True)
    assert Path("came in").exists()
    path.write_text(path.read_text().replace('title = "mine"', 'title = "mine"\nfigure = "os:getcwd"', 1))
    assert main(["paper", "plot", mine]) == 1
    assert "names 'intruder:Intruder'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "named", ["os:getcwd", "tfgw.cli:main", "tfgw.estimators.classifier:TFGWClassifier", "tfgw.baselinesX:GIN"]
)
def test_what_is_part_of_tfgw(named: str) -> None:
    for name in names():
        check_trusted(load_experiment(name))
    one = load_experiment("table5")
    with pytest.raises(ValueError, match=f"names '{named}', which is not part of tfgw"):
        check_trusted(replace(one, rows=(*one.rows, replace(one.rows[0], path=named))))
    with pytest.raises(ValueError, match=f"names '{named}', which is not part of tfgw"):
        check_trusted(replace(one, figure=named))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "mine"', 'title = "mine"\nlike = "../../../pyproject"', "not an experiment of the paper"),
        ('title = "mine"', 'title = "mine"\ngrids = 3', "experiment mine.toml: invalid file"),
        ('["fair"]', '["kfold"]', "protocol 'kfold': unknown; choose one of fair, paper"),
        ('["fair"]', '["synthetic"]', "cannot be generated; choose one of SKIP-CIRCLES, 4-CYCLES"),
        ('["fair"]', "[]", "needs no runs"),
        ('title = "mine"', 'title = "mine"\nunit = "promille"', "experiment mine.toml: invalid file"),
    ],
)
def test_bad_experiment(old: str, new: str, message: str, mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(mine)
    path.write_text(path.read_text().replace(old, new))
    assert main(["paper", "run", path.name, "--preset", "smoke", "--jobs", "1", "--trust"]) == 1
    assert message in capsys.readouterr().err
    assert not Path("results").exists()


def test_statistics_need_no_protocol(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(mine)
    path.write_text(path.read_text().replace('["fair"]', "[]"))
    assert main(["paper", "show", mine]) == 1
    assert "mine: has no protocols, and 'it' is not a statistic of a dataset" in capsys.readouterr().err
    path.write_text(path.read_text().replace('model = "it"', 'model = "graphs"'))
    (entry,) = answer(capsys, "show", mine)
    assert entry["graphs"] == [None, 40]


def test_timing_runs_alone(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell after the other, on one thread, whatever --jobs says; the table has columns of its own."""
    path = Path(mine)
    text = path.read_text().replace('["fair"]', '["timing"]')
    path.write_text(text.replace("small:CycleFinder", "small:SizedCycleFinder"))
    options = [mine, "--preset", "smoke", "--jobs", "3"]
    assert answer(capsys, "run", *options, "--dry-run")["jobs"] == 1
    assert answer(capsys, "run", *options, "--trust")["ran"] == 1
    (file,) = Path("results").rglob("*.json")
    run = json.loads(file.read_text())["run"]
    assert (run["threads"], run["jobs"]) == (1, 1)
    main(["paper", "show", mine, "--preset", "smoke"])
    header, row = capsys.readouterr().out.splitlines()[-2:]
    assert "ms per graph" in header
    assert "3.1k (3,100)" in row


def test_an_experiment_without_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The figure of samples has nothing to run, and nothing to tabulate."""
    assert answer(capsys, "run", "fig-samples", "--results", str(tmp_path), "--jobs", "1")["ran"] == 0
    assert answer(capsys, "show", "fig-samples", "--results", str(tmp_path)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "table9"], "no experiment 'table9'"),
        (["run", "table2", "--dataset", "ZINC"], "dataset 'ZINC': not in this experiment"),
        (["show", "table2", "--model", "gat"], "model 'gat': not in this experiment"),
        (["run", "table2", "--protocol", "random"], "protocol 'random'"),
        (["run", "table2", "--splits", "nowhere.json"], "no such file of splits"),
        (
            ["run", "table2", "--protocol", "paper", "--splits", "a.json"],
            "splits: only supported for the protocol 'fair'",
        ),
        (["run", "table5"], "needs no runs"),
        (["run", "./mine.toml"], "mine.toml"),
    ],
)
def test_bad_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["paper", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_run_names_datasets_without_published_splits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "NCI1_splits.json").write_text("[]")
    command = ["paper", "run", "table2", "--model", "gin", "--splits", str(tmp_path), "--dry-run", "--results", "none"]
    assert main([*command, "--dataset", "NCI1", "--dataset", "MUTAG"]) == 0
    assert "tfgw: There are no published splits of MUTAG: the folds are our own." in capsys.readouterr().err
    assert main([*command, "--dataset", "NCI1"]) == 0
    assert "our own" not in capsys.readouterr().err


def test_published_splits_are_the_default_of_an_experiment(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A run needs their files, of which the experiment knows the checksum; a table does not."""
    path = Path(mine)
    row = '[[rows]]\nmodel = "it"\ntitle = "It"\nclass = "tests.paper.small:CycleFinder"\nby_epochs = false\n'
    path.write_text(
        f'title = "mine"\nprotocols = ["fair", "paper"]\nsplits = "published"\ndatasets = ["ENZYMES"]\n{row}'
    )
    Path("data").mkdir()
    write_tu_folder(Path("data") / "ENZYMES", graphs=40)
    command = ["paper", "run", mine, "--trust", "--jobs", "1", "--data-dir", "data"]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert (
        "splits: required for ENZYMES: the folder of its published splits, ENZYMES_splits.json, or --own-folds" in error
    )
    Path("ENZYMES_splits.json").write_text("[]")
    assert main([*command, "--splits", "."]) == 1
    assert "ENZYMES_splits.json: expected 10 folds, found 0" in capsys.readouterr().err
    (entry,) = answer(capsys, "show", mine)
    assert (entry["done"], entry["total"]) == (0, 30)
    assert answer(capsys, "run", mine, "--trust", "--jobs", "2", "--data-dir", "data", "--own-folds")["ran"] == 30
    assert {record["run"]["jobs"] for record in Records(Path("results"))} == {2}
    assert [answer(capsys, "show", mine, *options)[0]["done"] for options in ([], ["--own-folds"])] == [0, 30]
    with pytest.raises(SystemExit):
        main(["paper", "show", mine, "--own-folds", "--splits", "."])
    assert "--splits: not allowed with argument --own-folds" in capsys.readouterr().err


def test_check_runs_finished_cells_again(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It fails if a result differs although only the code of this package may have changed."""
    options = [mine, "--preset", "smoke", "--jobs", "1", "--trust"]
    assert main(["paper", "check", *options]) == 1
    assert "no cell is finished; run: tfgw paper run" in capsys.readouterr().err
    answer(capsys, "run", *options)
    found = answer(capsys, "check", *options, "--cells", "2", "--seed", "5")
    assert [(entry["equal"], entry["same_machine"], entry["new"]) for entry in found] == [(True, True, 1.0)] * 2
    assert len(answer(capsys, "check", *options)) == 3
    records = Records(Path("results"))
    for record in list(records):
        records.put(record | {"result": record["result"] | {"test_accuracy": 0.5}})
    assert main(["paper", "check", *options]) == 1
    assert "3 cells were run again; 0 gave the same result." in capsys.readouterr().out
    for record in list(records):
        machine = record["run"]["machine"] | {"processor": "Fast"}
        records.put(record | {"run": record["run"] | {"machine": machine}})
    assert main(["paper", "check", *options]) == 0
    assert main(["paper", "check", *[option for option in options if option != "--trust"]]) == 1
    assert "not part of tfgw" in capsys.readouterr().err

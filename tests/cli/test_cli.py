"""The command line as a user meets it: a process with arguments, two streams and an exit code."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import tfgw
from tfgw.cli import main
from tfgw.cli.option_defaults import FIELDS, default_of
from tfgw.cli.settings import MODEL_OPTIONS, PAPER, TRAINING_OPTIONS
from tfgw.datasets import GraphDataset
from tfgw.train import Preprocessing
from tfgw.train.recipes import RECIPES
from tfgw.train.tensor_file import read_tensors

pytestmark = pytest.mark.usefixtures("workplace")

COMMANDS = ["train", "evaluate", "predict", "embed", "check", "report", "datasets"]
QUICK = ["--epochs", "2", "--starts", "1", "--accelerator", "cpu"]


def write_tu_folder(folder: Path, *, graphs: int = 20) -> Path:
    """A dataset of the user's own: cycles (label 3) and paths (label 7), with node labels."""
    edges, indicator, graph_labels, node_labels, first = [], [], [], [], 1
    for number in range(graphs):
        nodes = 4 + number % 3
        pairs = [(first + i, first + i + 1) for i in range(nodes - 1)]
        pairs += [(first + nodes - 1, first)] if number % 2 else []
        edges += [f"{a}, {b}\n{b}, {a}\n" for a, b in pairs]
        indicator += [f"{number + 1}\n"] * nodes
        node_labels += [f"{i % 2}\n" for i in range(nodes)]
        graph_labels.append("3\n" if number % 2 else "7\n")
        first += nodes
    folder.mkdir()
    tables = {"A": edges, "graph_indicator": indicator, "graph_labels": graph_labels, "node_labels": node_labels}
    for table, lines in tables.items():
        (folder / f"{folder.name}_{table}.txt").write_text("".join(lines))
    return folder


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    """What a command prints with ``--json``, which must be JSON and nothing else."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_help_explains_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], *([command] for command in COMMANDS)):
        with pytest.raises(SystemExit) as end:
            main([*arguments, "--help"])
        assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_version() -> None:
    for module in ("tfgw", "tfgw.cli"):
        command = [sys.executable, "-m", module, "--version"]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        assert found.stdout == f"tfgw {tfgw.__version__}\n"


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(tmp_path / "mine")
    arguments = ["train", "--dataset", str(folder), *QUICK, "--output", "run", "--test", "0.5"]
    arguments += ["--start-kinds", "anchored", "perturbed"]
    answer(capsys, *arguments)
    found = answer(capsys, "check", "run", "--starts", "4")
    assert found["canonical_order"] is True
    assert found["renumbered_changed"] == found["renumbered_worst"] == 0
    assert found["converged"] == 1
    assert 0 <= found["above_optimum_at_most_median"] <= found["above_optimum_at_most_worst"] <= 1
    assert answer(capsys, "check", "run", "--dataset", str(folder), "--graphs", "3")["graphs"] == 3
    assert main(["check", "run"]) == 0
    assert "renumbering nodes changes" in capsys.readouterr().out
    assert main(["check", "nothing"]) == 1
    assert "nothing" in capsys.readouterr().err


def test_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(tmp_path / "mine")
    options = {}
    for recipe in ("default", "paper"):
        answer(capsys, "train", "--dataset", str(folder), "--epochs", "2", "--recipe", recipe, "--output", recipe)
        options[recipe] = json.loads((tmp_path / recipe / "results.json").read_text())["options"]
    names = ("recipe", "epochs", "batch_size", "weight_decay", "label_smoothing", "validation", "dropout", "schedule")
    assert [options["default"][name] for name in names] == ["default", 2, 64, 0.1, 0.1, 0.0, 0.5, "one_cycle"]
    assert [options["paper"].get(name) for name in names] == ["paper", 2, 128, 0.0, 0.0, 0.1, 0.0, None]
    changed = ["--label-smoothing", "0", "--weight-decay", "0.02", "--validation", "0.3"]
    answer(capsys, "train", "--dataset", str(folder), "--epochs", "2", *changed, "--output", "changed")
    found = json.loads((tmp_path / "changed" / "results.json").read_text())["options"]
    assert [found[name] for name in names] == ["default", 2, 64, 0.02, 0.0, 0.3, 0.5, "one_cycle"]


def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (["train", "--epochs", "0"], ["train", "--alpha", "2"], ["train", "--start-kinds", "random"])
    for arguments in (["fly"], *wrong, ["predict"], []):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 2, arguments
    assert "must be at least 1, got 0" in capsys.readouterr().err


def test_a_failure_is_one_line_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    for folder, text in (("damaged", "{"), ("other", "[1]"), ("partial", '{"dataset": "MUTAG"}')):
        Path(folder).mkdir()
        Path(folder, "run.json").write_text(text)
    for arguments in (
        ["train", "--dataset", "./nowhere"],
        ["evaluate", "nothing.safetensors"],
        ["train", "--resume", "nowhere"],
        ["train", "--resume", "damaged"],
        ["train", "--resume", "other"],
        ["train", "--resume", "partial"],
    ):
        assert main(arguments) == 1, arguments
        printed = capsys.readouterr()
        assert printed.out == ""
        lines = [line for line in printed.err.splitlines() if not line.startswith("tfgw: training in")]
        assert len(lines) == 1, printed.err
        assert lines[0].startswith("tfgw: error: ")
        assert arguments[-1].removeprefix("./") in lines[0]


def test_debug_shows_where_it_failed() -> None:
    with pytest.raises(ValueError, match="no such file"):
        main(["evaluate", "nothing.safetensors", "--debug"])


def test_train_names_the_next_steps(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands that work on the run; without test graphs, only predictions do."""
    folder = str(write_tu_folder(workplace / "MINE"))
    assert main(["train", "--dataset", folder, "--test", "0.2", "--output", "run", "--no-report", *QUICK]) == 0
    shown = capsys.readouterr().out
    results, steps = shown.split("Next steps:\n")
    assert "validation accuracy" not in results  # there are no validation graphs
    assert [line.split("  ")[0] for line in steps.splitlines()] == [
        "tfgw predict run --dataset PATH",
        "tfgw evaluate run",
        "tfgw check run",
    ]
    assert main(["train", "--dataset", folder, "--test", "0", "--output", "all", "--no-report", *QUICK]) == 0
    steps = capsys.readouterr().out.split("Next steps:\n")[1]
    assert [line.split("  ")[0] for line in steps.splitlines()] == ["tfgw predict all --dataset PATH"]


def test_a_users_folder_is_trained_on_and_used(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_tu_folder(workplace / "MINE"))
    run = answer(capsys, "train", "--dataset", folder, "--test", "0.2", *QUICK)
    assert {"test_accuracy", "validation_accuracy", "train_accuracy", "parameters"} <= run.keys()
    assert run["test_graphs"] == 4
    assert run["folder"] == "runs/MINE-1"

    again = answer(capsys, "evaluate", run["folder"])
    assert again["accuracy"] == run["test_accuracy"]
    assert answer(capsys, "evaluate", run["folder"], "--dataset", folder) == again  # no graph of training
    everything = answer(capsys, "evaluate", run["folder"], "--dataset", folder, "--all")
    assert everything["graphs"] == answer(capsys, "evaluate", run["folder"], "--all")["graphs"] == 20
    assert everything["classes"] == [3, 7]
    assert everything["majority_rate"] == 0.5
    assert [sum(row) for row in everything["confusion_matrix"]] == [10, 10]

    predicted = answer(capsys, "predict", run["folder"], "--dataset", folder)["predictions"]
    assert [entry["graph"] for entry in predicted] == list(range(20))
    assert [entry["label"] for entry in predicted] == [7, 3] * 10
    assert {entry["prediction"] for entry in predicted} <= {3, 7}
    assert all(0.5 <= entry["probability"] <= 1 for entry in predicted)
    for entry in predicted:
        assert entry["probability"] == entry[f"probability_{entry['prediction']}"]
        assert entry["probability_3"] + entry["probability_7"] == pytest.approx(1)
    right = sum(entry["label"] == entry["prediction"] for entry in predicted)
    assert everything["accuracy"] == right / 20

    embedded = answer(capsys, "embed", f"{run['folder']}/model.safetensors", "--dataset", folder)
    distances = embedded["distances"]
    assert [len(distances), len(distances[0])] == [20, 3 * 4]  # of three networks, two per class
    assert embedded["graphs"] == list(range(20))

    tested = answer(capsys, "predict", run["folder"])["predictions"]
    assert len(tested) == 4
    assert all(entry == predicted[entry["graph"]] for entry in tested)
    some = answer(capsys, "embed", run["folder"])
    assert some["graphs"] == [entry["graph"] for entry in tested]
    assert some["distances"] == [distances[graph] for graph in some["graphs"]]

    for command in ("predict", "embed"):
        assert main([command, run["folder"], "--output", f"{command}.csv"]) == 0
        rows = list(csv.reader(Path(f"{command}.csv").read_text().splitlines()))
        assert len(rows) == 5
        assert rows[0][0] == "graph"
        assert [int(row[0]) for row in rows[1:]] == some["graphs"]
        assert main([command, run["folder"], "--output", f"{command}.csv"]) == 1
    header = "graph,label,prediction,probability,probability_3,probability_7"
    assert Path("predict.csv").read_text().splitlines()[0] == header
    assert main(["evaluate", run["folder"]]) == 0
    assert "confusion matrix (rows: true class, columns: predicted class)" in capsys.readouterr().out


def test_values_are_predicted_and_measured(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(workplace / "MINE")
    (folder / "MINE_graph_labels.txt").unlink()
    for columns in (1, 2):
        values = [[0.5 * number, -number][:columns] for number in range(20)]
        text = "".join(", ".join(map(str, row)) + "\n" for row in values)
        (folder / "MINE_graph_attributes.txt").write_text(text)
        run = answer(capsys, "train", "--dataset", str(folder), "--test", "0.2", *QUICK)["folder"]
        found = answer(capsys, "evaluate", run, "--all")
        assert found["rmse"] ** 2 == pytest.approx(-found["negative_mse"], rel=1e-5)
        assert found["mae"] <= found["rmse"]
        assert found["r2"] < 1
        predicted = answer(capsys, "predict", run, "--dataset", str(folder))["predictions"]
        names = (
            ["target", "prediction"] if columns == 1 else [f"{n}_{i}" for n in ("target", "prediction") for i in (0, 1)]
        )
        assert list(predicted[0]) == ["graph", *names]
        assert [[entry[name] for name in names[:columns]] for entry in predicted] == values


def test_runs_are_never_overwritten(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--dataset", str(write_tu_folder(workplace / "MINE")), *QUICK]
    assert [answer(capsys, *command)["folder"] for _ in range(2)] == ["runs/MINE-1", "runs/MINE-2"]
    assert main([*command, "--output", "runs/MINE-1"]) == 1
    assert "already exists" in capsys.readouterr().err


def test_one_seed_gives_one_file(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--dataset", str(write_tu_folder(workplace / "MINE")), "--dropout", "0.5", *QUICK]
    folders = [Path(answer(capsys, *command)["folder"]) for _ in range(2)]
    contents = [(folder / "model.safetensors").read_bytes() for folder in folders]
    assert contents[0] == contents[1]


def test_text_ends_with_the_files(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--dataset", str(write_tu_folder(workplace / "MINE")), *QUICK]) == 0
    text = capsys.readouterr().out
    assert "test accuracy" in text
    assert "runs/MINE-1/model.safetensors" in text


def test_datasets_are_listed_with_their_statistics(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = str(write_tu_folder(workplace / "MINE"))
    found = answer(capsys, "datasets", "4-CYCLES", own)
    assert [entry["name"] for entry in found] == ["4-CYCLES", "MINE"]
    assert [entry["graphs"] for entry in found] == [50, 20]
    assert [entry["name"] for entry in answer(capsys, "datasets")] == ["SKIP-CIRCLES", "4-CYCLES"]


def test_a_folder_is_listed(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = workplace / "data"
    folder.mkdir()
    write_tu_folder(folder / "MINE")
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        for path in (folder / "MINE").iterdir():
            archive.write(path, path.name.replace("MINE", "PACKED"))
    (folder / "graphs.jsonl").write_text('{"nodes": [{}, {}], "edges": [{"source": 0, "target": 1}], "target": 0.5}\n')
    (folder / "mols.csv").write_text("SMILES,active\nCC,1\n")
    (folder / "broken.zip").write_text("nothing")
    (folder / "notes.txt").write_text("nothing")
    found = answer(capsys, "datasets", "--data-dir", str(folder))
    assert [entry.get("name") for entry in found] == ["MINE", None, "graphs", None, "PACKED"]
    assert [entry["graphs"] for entry in found if "graphs" in entry] == [20, 1, 20]
    assert found[1]["note"].startswith("cannot be loaded")
    assert found[3]["columns"] == ["SMILES", "active"]
    assert main(["datasets", "--data-dir", str(folder)]) == 0
    text = capsys.readouterr().out
    assert f"{folder / 'mols.csv'}: a table with columns SMILES, active" in text
    assert "not in" in text
    assert "MUTAG" in text
    assert main(["datasets", "--data-dir", "nowhere"]) == 1
    assert "nowhere: no such folder" in capsys.readouterr().err


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tfgw.cli", "train", "--no-report", "--output", "run", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell in the background hands Ctrl-C down ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def test_control_c_ends_cleanly_and_the_run_goes_on(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dataset", str(write_tu_folder(workplace / "MINE")), "--epochs", "200", "--accelerator", "cpu"]
    arguments += ["--estimators", "1", "--no-report"]
    process = start(*arguments, "--tensorboard", "--checkpoint-seconds", "1000")
    wait_for(workplace / "run" / "tensorboard")  # epochs are counted from now on
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, "the run ended before it was interrupted"
    assert printed == ""
    assert errors.splitlines()[-1] == "tfgw: interrupted; continue with: tfgw train --resume run"
    assert "Traceback" not in errors
    checkpoint = read_tensors(workplace / "run" / "checkpoint.safetensors", kind="checkpoint")[1]
    assert 0 < checkpoint["epoch"] < 200

    resumed = answer(capsys, "train", "--resume", "run")
    undisturbed = answer(capsys, "train", *arguments)
    assert resumed["epochs"] == 200
    assert resumed["seconds"] > checkpoint["seconds"] > 0
    for name in ("kept_epoch", "test_accuracy", "train_accuracy"):
        assert resumed[name] == undisturbed[name]


def test_options_of_a_run_are_written_whole(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed while it writes them leaves no part of a file."""

    def fail(*_: object) -> None:
        raise OSError("disk full")

    folder = write_tu_folder(workplace / "mine")
    monkeypatch.setattr(os, "fsync", fail)
    assert main(["train", "--dataset", str(folder), *QUICK, "--output", "run"]) == 1
    assert "disk full" in capsys.readouterr().err
    assert not (workplace / "run").exists()


def test_an_unknown_dataset_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFGW_DATA", str(tmp_path))
    assert main(["train", "--dataset", "NOPE"]) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_does_not_fit_leaves_no_folder(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(workplace / "mine")
    wrong = ["--task", "regression", "--label-smoothing", "0.1"]
    assert main(["train", "--dataset", str(folder), *QUICK, *wrong]) == 1
    assert "label_smoothing: only for classification" in capsys.readouterr().err
    assert not (workplace / "runs").exists()


def test_help_names_the_defaults_that_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (*MODEL_OPTIONS, *TRAINING_OPTIONS):
        if option not in ("alpha", "start_kinds"):  # told in words
            assert default_of(option) == RECIPES["default"].get(FIELDS.get(option, option), PAPER[option])
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert f"passes over the training graphs (default: {RECIPES['default']['epochs']}, more for fewer" in text
    assert f"number of GIN layers (default: {RECIPES['default']['num_layers']})" in text


def test_help_does_not_load_torch() -> None:
    code = "import sys; from tfgw.cli.arguments import build_parser; build_parser(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_graphs_are_preprocessed_once(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = []
    preprocess = Preprocessing.__call__

    def counted(self: Preprocessing, dataset: GraphDataset) -> GraphDataset:
        prepared.append(len(dataset))
        return preprocess(self, dataset)

    monkeypatch.setattr(Preprocessing, "__call__", counted)
    folder = write_tu_folder(workplace / "MINE")
    answer(capsys, "train", "--dataset", str(folder), "--validation", "0.1", "--test", "0.2", *QUICK)
    assert sorted(prepared) == [2, 4, 14]


def test_class_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(tmp_path / "mine")
    labels = folder / "mine_graph_labels.txt"
    lines = labels.read_text().splitlines()
    labels.write_text("".join(f"{line}\n" for line in ["3"] * (len(lines) - 4) + lines[-4:]))
    losses = {}
    for name, options in {"plain": [], "balanced": ["--class-weight", "balanced"]}.items():
        answer(capsys, "train", "--dataset", str(folder), *QUICK, *options, "--output", name)
        losses[name] = read_tensors(tmp_path / name / "checkpoint.safetensors", kind="checkpoint")[1]["records"][0]
    assert losses["plain"]["score"] == losses["balanced"]["score"]
    assert losses["plain"]["loss"] != pytest.approx(losses["balanced"]["loss"], rel=1e-3)
    labels.rename(folder / "mine_graph_attributes.txt")
    assert main(["train", "--dataset", str(folder), *QUICK, *options, "--output", "values"]) == 1
    assert "--class-weight: only for classification, but the task is regression" in capsys.readouterr().err
    assert not (tmp_path / "values").exists()


def test_labels_that_are_numbers_are_predicted_as_values(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_tu_folder(workplace / "MINE"))  # labels 3 and 7
    run = answer(capsys, "train", "--dataset", folder, "--task", "regression", *QUICK)
    entries = answer(capsys, "predict", run["folder"], "--dataset", folder)["predictions"]
    assert {float(entry["target"]) for entry in entries} == {3.0, 7.0}
    assert 3 < sum(entry["prediction"] for entry in entries) / len(entries) < 7
    measured = answer(capsys, "evaluate", run["folder"], "--dataset", folder, "--all")
    expected = sum(abs(entry["prediction"] - float(entry["target"])) for entry in entries) / len(entries)
    assert measured["mae"] == pytest.approx(expected)

"""``tfgw train --model kernel``, and the commands that use its model."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_cli import write_tu_folder
from tests.cli.test_new_graphs import answer, failure, renumbered
from tfgw import load_model
from tfgw.cli import main
from tfgw.cli.arguments import build_parser
from tfgw.cli.model_choice import choose_model, network_options
from tfgw.cli.source import Source
from tfgw.datasets import save
from tfgw.datasets.cache import cached_tables
from tfgw.datasets.tu_files import open_files
from tfgw.estimators import TFGWKernelClassifier, TFGWKernelRegressor
from tfgw.nn import KernelModel
from tfgw.train.recipes import RECIPES

pytestmark = pytest.mark.usefixtures("workplace")


def trained(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, dict]:
    dataset = f"./{write_tu_folder(Path('mine'))}"
    return dataset, answer(
        capsys, "train", "--dataset", dataset, "--model", "kernel", "--output", "run", "--accelerator", "cpu", *options
    )


def test_new_graphs_are_predicted_as_in_the_whole(capsys: pytest.CaptureFixture[str]) -> None:
    dataset, results = trained(capsys)
    assert 0 <= results["leave_one_out_accuracy"] <= 1
    assert 0 <= results["test_accuracy"] <= 1
    assert results["regressions"] == results["distances"] == 16  # no triangles, so no clustering either
    tables = cached_tables(open_files(dataset))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(tables.node_counts))[:5]
    save(renumbered(tables, chosen, rng), "part")
    whole = answer(capsys, "predict", "run", "--dataset", dataset)["predictions"]
    alone = answer(capsys, "predict", "run", "--dataset", "./part")["predictions"]
    for place, graph in enumerate(chosen.tolist()):
        assert alone[place] == whole[graph] | {"graph": place, "label": None}
    assert TFGWKernelClassifier.load("run/model.safetensors").model_.num_graphs == results["train_graphs"]


def test_the_text_names_the_next_commands(capsys: pytest.CaptureFixture[str]) -> None:
    dataset = f"./{write_tu_folder(Path('mine'))}"
    assert main(["train", "--dataset", dataset, "--model", "kernel", "--output", "run", "--accelerator", "cpu"]) == 0
    text = capsys.readouterr().out
    assert "leave one out accuracy" in text
    assert "tfgw predict run --dataset PATH" in text
    assert main(["evaluate", "run"]) == 0


def test_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """α = 0 is solved exactly, and canonical order makes renumbering harmless."""
    monkeypatch.setattr("tfgw.train.kernel_diagnostics.CHECKED", 5)
    _, results = trained(capsys)
    found = answer(capsys, "check", "run", "--starts", "3", "--graphs", "2")
    assert (found["graphs"], found["training_graphs"], found["distances"]) == (2, 5, 16)
    assert found["of_training_graphs"] == results["train_graphs"]
    assert (found["starts"], found["more_starts"]) == (1, 3)
    assert found["renumbered_changed"] == 0
    assert found["converged"] == 1
    assert found["gap_worst"] < 1e-8
    assert found["above_optimum_at_most_worst"] <= 1
    assert main(["check", "run", "--starts", "3", "--graphs", "2"]) == 0
    assert f"5 of {results['train_graphs']} training graphs, 16 distances" in capsys.readouterr().out


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    trained(capsys)
    assert not Path("run/report.html").exists()  # tests run without reports
    found = answer(capsys, "report", "run", "--graph", "2")
    text = Path(found["report"]).read_text()
    assert "Graph 2: " in text
    assert "Influential training graphs" in text
    machine = load_model("run/model.safetensors").model
    assert machine.config.distances
    assert all(str(kind) in text for kind in machine.config.distances)  # their weights in the overview
    assert "training history" not in text


def test_training_ends_with_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--dataset", f"./{write_tu_folder(Path('mine'))}", "--model", "kernel", "--output", "run"]
    assert main([*command, "--accelerator", "cpu", "--report"]) == 0
    out, err = capsys.readouterr()
    assert "run/report.html" in out
    assert "no report" not in err
    options = json.loads(Path("run/results.json").read_text())["options"]
    assert options["model"] == "kernel"
    assert "epochs" not in options


def test_errors_of_regression_are_in_the_units_of_the_targets(capsys: pytest.CaptureFixture[str]) -> None:
    _, results = trained(capsys, "--task", "regression")
    train = Source(dataset="./mine", validation=0.0, values=True).parts().train
    model = TFGWKernelRegressor(accelerator="cpu").fit(list(train), train.y.numpy().reshape(-1))
    variance = float(train.y.double().var(correction=0))
    assert variance > 3  # labels are 3 and 7
    assert results["leave_one_out_negative_mse"] == pytest.approx(-(1 - model.loo_score_) * variance, rel=1e-6)


def test_what_a_kernel_machine_has_not_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(capsys)
    begin = ["train", "--dataset", "./mine", "--model", "kernel"]
    assert failure(capsys, *begin, "--epochs", "3") == "--epochs: not an option of a kernel machine (--model kernel)"
    assert "--task multilabel" in failure(capsys, *begin, "--task", "multilabel")
    weighted = failure(capsys, *begin, "--task", "regression", "--class-weight", "balanced")
    assert weighted == "--class-weight: only for classification, but the task is regression"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    missing = failure(capsys, *begin, "--accelerator", "cuda")
    assert missing == "accelerator: PyTorch finds no GPU; use 'cpu' or 'auto'"
    assert failure(capsys, "train", "--dataset", "./none", "--model", "network", "--accelerator", "cuda") == missing
    assert "has no checkpoints" in failure(capsys, "train", "--resume", "run")
    assert not Path("runs").exists()


def said(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The first line of training with these options."""
    if not Path("mine").exists():
        write_tu_folder(Path("mine"))
    assert main(["train", "--dataset", "./mine", "--accelerator", "cpu", "--no-report", *options]) == 0
    return capsys.readouterr().err.splitlines()[0]


def test_a_kernel_machine_is_trained_if_that_takes_minutes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = said(capsys, "--output", "small")
    train = Source(dataset="./mine", validation=0.0).parts().train
    assert line == (
        f"tfgw: training a kernel machine, because comparing all {len(train)} training graphs takes less than 1 min of"
        " CPU time (limit: 20 min); --model network trains a network"
    )
    assert isinstance(load_model("small/model.safetensors").model, KernelModel)
    monkeypatch.setattr("tfgw.cli.model_choice.estimated_seconds", lambda graphs: len(graphs) * 1200 / len(train))
    assert "takes about 20 min of CPU time (limit: 20 min)" in said(capsys, "--output", "limit")
    monkeypatch.setattr("tfgw.cli.model_choice.estimated_seconds", lambda graphs: 1 + 60 * 2345.0)
    monkeypatch.setitem(RECIPES["default"], "epochs", 1)
    assert (
        f"training a network, because comparing all {len(train)} training graphs would take about 2,345 min of CPU"
        " time, more than 20 min; --model kernel trains a kernel machine" in said(capsys, "--output", "large")
    )
    assert json.loads(Path("large/run.json").read_text())["model"] == "network"
    assert len(load_model("large/model.safetensors").members) > 1


def test_many_graphs_are_learned_by_a_network(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfgw.cli.model_choice.MAX_GRAPHS", 9)
    monkeypatch.setitem(RECIPES["default"], "epochs", 1)
    assert "training a network, because there are more than 9 training graphs" in said(capsys, "--output", "run")


def test_options_of_networks_choose_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    line = said(capsys, "--epochs", "1", "--templates", "3", "--output", "run")
    assert line == (
        "tfgw: training a network, because --epochs is an option of networks; --model kernel trains a kernel machine"
    )


@pytest.mark.parametrize("option", ["--validation", "--recipe", "--templates", "--tensorboard", "--devices"])
def test_what_counts_as_an_option_of_networks(option: str) -> None:
    values = {"--tensorboard": [], "--recipe": ["default"], "--validation": ["0.2"]}
    line = ["train", option, *values.get(option, ["3"])]
    args = build_parser().parse_args(line)
    args.arguments = line
    assert network_options(args) == [option]


def test_a_given_model_needs_no_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert "because" not in said(capsys, "--model", "kernel", "--output", "kernel")
    assert "because" not in said(capsys, "--model", "network", "--epochs", "1", "--output", "network")


def test_the_generated_dataset_keeps_its_network() -> None:
    args = build_parser().parse_args(["train"])
    args.arguments = ["train"]
    found = choose_model(args, Source(dataset="SKIP-CIRCLES", validation=0.0))
    assert (found.model, found.reason) == ("network", "SKIP-CIRCLES has settings for networks")
    args.arguments = ["train", "--task", "multilabel"]
    args.dataset, args.task = "./mine", "multilabel"
    assert choose_model(args, Source(dataset="./mine")).reason == "kernel machines do not predict several labels"


def test_all_commands_work_with_the_default_model(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "--output", "run")
    assert answer(capsys, "evaluate", "run")["graphs"] > 0
    assert len(answer(capsys, "predict", "run")["predictions"]) > 0
    assert main(["embed", "run", "--output", "distances.csv"]) == 0
    header = Path("distances.csv").read_text().splitlines()[0]
    assert header.count("template") == 16 * load_model("run/model.safetensors").model.num_graphs
    assert "has no checkpoints" in failure(capsys, "train", "--resume", "run")

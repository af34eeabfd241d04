"""``tfgw train --model kernel``, and the commands that use its model."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_cli import write_tu_folder
from tests.cli.test_new_graphs import answer, failure, renumbered
from tfgw.cli import main
from tfgw.cli.source import Source
from tfgw.datasets import save
from tfgw.datasets.cache import cached_tables
from tfgw.datasets.files import open_files
from tfgw.estimators import TFGWKernelClassifier, TFGWKernelRegressor

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
    assert "has no checkpoints" in failure(capsys, "train", "--resume", "run")
    for command in ("report", "check"):
        assert "the model is a kernel machine" in failure(capsys, command, "run")
    assert not Path("runs").exists()

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.train.run_in_folder import train
from tests.train.small import cycles_and_stars, same_weights, small_model
from tfgw.train import FileError, TrainConfig, fit
from tfgw.train.checkpoint import FILE_NAME, KIND, Progress, load_checkpoint, save_checkpoint, training_seconds
from tfgw.train.optimizer import new_optimizer
from tfgw.train.tensor_file import read_tensors, write_tensors

ROOT = Path(__file__).parents[2]


def test_a_run_killed_at_any_moment_ends_with_the_same_weights(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.train.run_in_folder", str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (tmp_path / FILE_NAME).exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)  # somewhere in the middle of an epoch, or of writing a checkpoint
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"

    resumed_model, resumed = train(tmp_path)
    expected_model, expected = train(None)
    assert same_weights(resumed_model, expected_model)
    assert resumed == expected


def test_ctrl_c_ends_a_run_after_its_epoch_with_a_checkpoint(tmp_path: Path) -> None:
    data = cycles_and_stars()
    config = TrainConfig(epochs=4, batch_size=12, checkpoint_seconds=1000, accelerator="cpu")
    whole, interrupted, resumed = (small_model(data) for _ in range(3))
    fit(whole, data, config=config)
    steps = []

    def press_in_the_third_step(*_: object) -> None:
        steps.append(len(steps) + 1)
        if steps[-1] == 3:
            signal.raise_signal(signal.SIGINT)

    interrupted.register_forward_pre_hook(press_in_the_third_step)
    with pytest.raises(KeyboardInterrupt):
        fit(interrupted, data, config=config, folder=tmp_path)
    assert steps == [1, 2, 3, 4]  # two in each epoch
    assert read_tensors(tmp_path / FILE_NAME, kind=KIND)[1]["epoch"] == 2
    fit(resumed, data, config=config, folder=tmp_path, resume=True)
    assert same_weights(resumed, whole)


def test_a_folder_with_a_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    data = cycles_and_stars()
    config = TrainConfig(epochs=1, accelerator="cpu")
    fit(small_model(data), data, config=config, folder=tmp_path)
    with pytest.raises(FileExistsError, match="another run"):
        fit(small_model(data), data, config=config, folder=tmp_path)


def test_a_finished_run_can_be_given_more_epochs(tmp_path: Path) -> None:
    data = cycles_and_stars()
    longer, straight = small_model(data), small_model(data)
    fit(longer, data, config=TrainConfig(epochs=2, accelerator="cpu"), folder=tmp_path)
    longer = small_model(data)
    fit(longer, data, config=TrainConfig(epochs=5, accelerator="cpu"), folder=tmp_path, resume=True)
    fit(straight, data, config=TrainConfig(epochs=5, accelerator="cpu"))
    assert same_weights(longer, straight)


def test_a_resumed_run_still_has_the_weights_that_it_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the second epoch here, though training went on."""
    monkeypatch.setattr("tfgw.train.trainer.is_worth_keeping", lambda record, _: record.epoch == 2)
    data, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    second, resumed = small_model(data), small_model(data)
    two, four, five = (TrainConfig(epochs=n, validate_every=1, accelerator="cpu") for n in (2, 4, 5))
    fit(second, data, validation, config=two)
    fit(small_model(data), data, validation, config=four, folder=tmp_path)
    assert fit(resumed, data, validation, config=five, folder=tmp_path, resume=True).kept.epoch == 2
    assert same_weights(resumed, second)
    assert not same_weights(resumed, small_model(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, about: about.pop("config"), "not a valid checkpoint"),
        (lambda tensors, about: about.update(epoch="two"), "not a valid checkpoint"),
        (lambda tensors, about: about["records"].pop(), "the number of records differs from the number of epochs"),
        (lambda tensors, about: about["records"][0].update(loss="small"), "loss: expected float"),
        (lambda tensors, about: about["kept"].update(epoch=9), "kept epoch 9 of 2"),
        (lambda tensors, about: about.update(seconds="many"), "'many' seconds"),
        (
            lambda tensors, about: tensors.pop(next(name for name in tensors if name.startswith("kept/"))),
            "a different arch",
        ),
        (lambda tensors, about: tensors.pop("optimizer/0/step"), "state belongs to another optimiser"),
        (lambda tensors, about: tensors.update({"optimizer/0/exp_avg": torch.zeros(0)}), "does not fit the parameters"),
        (lambda tensors, about: tensors.update({"optimizer/x": torch.zeros(1)}), "not a valid checkpoint"),
    ],
)
def test_a_crafted_checkpoint_is_refused(change: Callable, message: str, tmp_path: Path) -> None:
    data, config = cycles_and_stars(), TrainConfig(epochs=2, validate_every=1, accelerator="cpu")
    fit(small_model(data), data, cycles_and_stars(seed=1), config=config, folder=tmp_path)
    tensors, about = read_tensors(tmp_path / FILE_NAME, kind=KIND)
    change(tensors, about)
    write_tensors(tmp_path / FILE_NAME, tensors, about, kind=KIND)
    with pytest.raises(FileError, match=message):
        fit(small_model(data), data, config=replace(config, epochs=3), folder=tmp_path, resume=True)


def test_other_settings_cannot_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    data = cycles_and_stars()
    fit(small_model(data), data, config=TrainConfig(epochs=1, accelerator="cpu"), folder=tmp_path)
    with pytest.raises(FileError, match=r"created with lr=0\.01"):
        fit(
            small_model(data),
            data,
            config=TrainConfig(epochs=2, lr=0.1, accelerator="cpu"),
            folder=tmp_path,
            resume=True,
        )
    with pytest.raises(FileError, match="a different architecture"):
        fit(
            small_model(data, layers=2),
            data,
            config=TrainConfig(epochs=2, accelerator="cpu"),
            folder=tmp_path,
            resume=True,
        )


@pytest.mark.parametrize(("seconds", "epochs_saved"), [(0.0, [1, 2, 3]), (1000.0, [3])])
def test_checkpoints_are_saved_as_often_as_asked_for(
    seconds: float, epochs_saved: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at the end of the run in any case."""
    saved: list[int] = []

    def note(folder: Path, progress: Progress, *others: Any) -> None:
        saved.append(progress.epoch)
        save_checkpoint(folder, progress, *others)

    monkeypatch.setattr("tfgw.train.trainer.save_checkpoint", note)
    data = cycles_and_stars()
    config = TrainConfig(epochs=3, checkpoint_seconds=seconds, accelerator="cpu")
    fit(small_model(data), data, config=config, folder=tmp_path)
    assert saved == epochs_saved


def test_the_time_of_a_run_includes_that_before_it_was_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at this clock takes a second, so that an epoch takes one."""
    monkeypatch.setattr("tfgw.train.trainer.time", SimpleNamespace(monotonic=count().__next__))
    data = cycles_and_stars()
    for epochs in (2, 5):
        config = TrainConfig(epochs=epochs, validate_every=1, accelerator="cpu")
        fit(small_model(data), data, data, config=config, folder=tmp_path, resume=True)
        assert training_seconds(tmp_path) == epochs


def test_settings_that_do_not_change_what_was_trained_may_differ(tmp_path: Path) -> None:
    """More epochs are only possible if the learning rates do not depend on their number."""
    data = cycles_and_stars()
    cycle = TrainConfig(epochs=2, schedule="one_cycle", accelerator="cpu")
    fit(small_model(data), data, config=cycle, folder=tmp_path / "cycle")
    with pytest.raises(FileError, match=r"was created with epochs=2, cannot continue with 3$"):
        fit(small_model(data), data, config=replace(cycle, epochs=3), folder=tmp_path / "cycle", resume=True)
    for schedule in ("constant", "halved"):
        config = TrainConfig(epochs=2, schedule=schedule, checkpoint_seconds=7.0, accelerator="cpu")
        fit(small_model(data), data, config=config, folder=tmp_path / schedule)
        other = replace(config, checkpoint_seconds=8.0, epochs=3)
        result = fit(small_model(data), data, config=other, folder=tmp_path / schedule, resume=True)
        assert [record.epoch for record in result.records] == [1, 2, 3]


def test_checkpoints_of_older_versions_have_no_times(tmp_path: Path) -> None:
    data, config = cycles_and_stars(), TrainConfig(epochs=2, accelerator="cpu")
    fit(small_model(data), data, config=config, folder=tmp_path)
    tensors, about = read_tensors(tmp_path / FILE_NAME, kind=KIND)
    del about["seconds"]
    write_tensors(tmp_path / FILE_NAME, tensors, about, kind=KIND)
    assert training_seconds(tmp_path) == 0
    model = small_model(data)
    progress = load_checkpoint(tmp_path, model, new_optimizer(model, config), config)
    assert (progress.seconds, progress.epoch) == (0, 2)

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small import cycles_and_stars, same_weights, small_model

from tfgw.train import FileError, TrainConfig, fit
from tfgw.train.checkpoint import FILE_NAME

CONFIG = TrainConfig(epochs=30, batch_size=7, validate_every=2, stratified=True, accelerator="cpu")
SCRIPT = """
import sys
from pathlib import Path
from small import cycles_and_stars, small_model
from test_checkpoint import CONFIG
from tfgw.train import fit
train, validation = cycles_and_stars(), cycles_and_stars(seed=1)
fit(small_model(train, dropout=0.5), train, validation, config=CONFIG, folder=Path(sys.argv[1]), resume=True)
"""


def undisturbed() -> tuple[object, object]:
    train, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    model = small_model(train, dropout=0.5)
    return model, fit(model, train, validation, config=CONFIG)


def test_a_run_killed_at_any_moment_ends_with_the_same_weights(tmp_path: Path) -> None:
    def start() -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path)], env=os.environ | {"PYTHONPATH": path}
        )

    process = start()
    checkpoint = tmp_path / FILE_NAME
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)  # somewhere in the middle of an epoch, or of writing a checkpoint
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"

    train, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    model = small_model(train, dropout=0.5)
    resumed = fit(model, train, validation, config=CONFIG, folder=tmp_path, resume=True)
    expected_model, expected = undisturbed()
    assert same_weights(model, expected_model)
    assert resumed == expected


def test_a_folder_with_a_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    train = cycles_and_stars()
    config = TrainConfig(epochs=1, accelerator="cpu")
    fit(small_model(train), train, config=config, folder=tmp_path)
    with pytest.raises(FileExistsError, match="another run"):
        fit(small_model(train), train, config=config, folder=tmp_path)


def test_a_finished_run_can_be_given_more_epochs(tmp_path: Path) -> None:
    train = cycles_and_stars()
    longer, straight = small_model(train), small_model(train)
    fit(longer, train, config=TrainConfig(epochs=2, accelerator="cpu"), folder=tmp_path)
    longer = small_model(train)
    fit(longer, train, config=TrainConfig(epochs=5, accelerator="cpu"), folder=tmp_path, resume=True)
    fit(straight, train, config=TrainConfig(epochs=5, accelerator="cpu"))
    assert same_weights(longer, straight)


def test_other_settings_cannot_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    train = cycles_and_stars()
    fit(small_model(train), train, config=TrainConfig(epochs=1, accelerator="cpu"), folder=tmp_path)
    with pytest.raises(FileError, match="made with lr=0.01"):
        fit(
            small_model(train),
            train,
            config=TrainConfig(epochs=2, lr=0.1, accelerator="cpu"),
            folder=tmp_path,
            resume=True,
        )
    with pytest.raises(FileError, match="another architecture"):
        fit(
            small_model(train, layers=2),
            train,
            config=TrainConfig(epochs=2, accelerator="cpu"),
            folder=tmp_path,
            resume=True,
        )

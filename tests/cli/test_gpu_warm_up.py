"""The GPU gets ready for a model while a command loads: on a machine whose GPU is a stand-in."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.ot.cuda.compiler_stand_in import Compiler, install
from tfgw.cli.gpu_warm_up import solver_settings, warm_up_gpu
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.ot.backends.cuda import kernels
from tfgw.ot.backends.cuda.compile import Architecture
from tfgw.ot.backends.cuda.units import units_of
from tfgw.train import Preprocessing, TrainedModel, save_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a run whose model has templates of 21 nodes."""
    return saved(tmp_path, n_starts=1)


def saved(tmp_path: Path, n_starts: int) -> Path:
    config = TFGWConfig(in_channels=3, out_channels=2, num_templates=4, template_nodes=21, n_starts=n_starts)
    trained = TrainedModel(
        model=TFGWModel(config),
        task="classification",
        classes=(0, 1),
        preprocessing=Preprocessing(in_channels=3),
        source={},
    )
    save_model(trained, tmp_path / "model.safetensors")
    return tmp_path


def arguments(model: Path, accelerator: str = "cuda", engine: str = "local") -> argparse.Namespace:
    return argparse.Namespace(model=model, accelerator=accelerator, engine=engine)


def test_settings_are_read_from_the_file(tmp_path: Path) -> None:
    assert solver_settings(saved(tmp_path, n_starts=5) / "model.safetensors") == (21, 5)


def is_soon(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("n_starts", [1, 4])
def test_kernels_of_a_solve_are_loaded(n_starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = saved(tmp_path, n_starts)
    loaded: list[tuple[int, str, int]] = []
    compiler = install(monkeypatch, Compiler(), tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch, "empty", lambda *size, device: None)
    monkeypatch.setattr(kernels, "architecture_of", lambda device: Architecture(90))
    monkeypatch.setattr(kernels, "kernel", lambda *which: loaded.append(which))
    thread = warm_up_gpu(arguments(model))
    assert thread is not None
    thread.join()
    units = [unit for unit in units_of(32) if unit.name != "backward" and (n_starts > 1 or not unit.several)]
    names = [name for unit in units for name in unit.kernels]
    assert loaded == [(1, name, 32) for name in names]
    assert is_soon(lambda: "solve.cu" in compiler.compiled)  # threads compile while the command goes on


@pytest.mark.parametrize(
    ("accelerator", "engine", "gpu"), [("cpu", "local", True), ("cuda", "ray", True), ("auto", "local", False)]
)
def test_nothing_is_done_for_other_devices(
    accelerator: str, engine: str, gpu: bool, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert warm_up_gpu(arguments(model, accelerator, engine)) is None


def test_errors_are_left_to_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[object] = []
    monkeypatch.setattr("threading.excepthook", failed.append)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    thread = warm_up_gpu(arguments(tmp_path / "nothing.safetensors"))
    assert thread is not None
    thread.join()
    assert not failed

"""``tfgw gpu`` compares the kernels for the layers of networks with PyTorch, here on an emulated GPU."""

import ctypes
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.nn.cuda.emulated_layers import launch_emulated
from tests.ot.cuda.emulation import COMPILER
from tfgw.nn import layer_check
from tfgw.nn.cuda import launching
from tfgw.nn.cuda.adam_kernel import AdamSteps, AdamUpdate
from tfgw.nn.cuda.projection_kernel import Projection
from tfgw.nn.layer_check import TOLERANCES, check_layer_kernels
from tfgw.ot.backends.cuda.units import LAYERS

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

Change = Callable[[ctypes.Structure], None]


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Batches that are moved to "cuda" go to an emulated GPU. Gives the names of the kernels that it runs."""
    return emulate(monkeypatch, lambda argument: None)


def emulate(monkeypatch: pytest.MonkeyPatch, change: Change) -> list[str]:
    launched: list[str] = []

    def launch(name: str, blocks: int, threads: int, argument: ctypes.Structure, device: torch.device) -> None:
        launched.append(name)
        change(argument)
        launch_emulated(name, blocks, threads, argument, device)

    computed = layer_check._computed

    def on_either(device: str, dtype: torch.dtype) -> list[Tensor]:
        monkeypatch.setattr(launching, "is_supported", lambda x: device == "cuda")
        return computed("cpu", dtype)

    monkeypatch.setattr(layer_check, "_computed", on_either)
    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(layer_check, "layers_origin", lambda device: "cache")
    monkeypatch.setattr(layer_check, "load_layers", lambda device: None)
    return launched


def test_every_kernel_agrees_with_pytorch(emulated: list[str]) -> None:
    checked = check_layer_kernels()
    assert checked.origin == "cache"
    assert checked.agrees
    assert set(emulated) == set(LAYERS.kernels)
    assert 0 < checked.difference < 1e-13
    assert 1e-9 < checked.difference_float32 < 1e-5


@pytest.mark.parametrize("field", ["eps", "momentum", "outputs", "own", "groups", "size", "upper", "columns"])
def test_wrong_results_are_found(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is in another kernel or result; with too few outputs, the last gradients of weights are not set."""

    def change(argument: ctypes.Structure) -> None:
        if isinstance(argument, Projection):
            if field == "upper":
                argument.tensors[1].upper *= 1.001
            elif field == "columns":
                argument.tensors[0].columns //= 2
        elif isinstance(argument, AdamUpdate) and field == "size":
            argument.tensors[0].size -= 1
        elif isinstance(argument, AdamSteps) and field == "groups":
            argument.groups[0].constant_rate *= 1.001
        elif field == "outputs" and hasattr(argument, field):
            argument.outputs -= 1
        elif field in ("eps", "momentum", "own") and hasattr(argument, field):
            setattr(argument, field, 1.001 * getattr(argument, field) + 1e-3)

    emulate(monkeypatch, change)
    checked = check_layer_kernels()
    assert not checked.agrees
    assert checked.difference > TOLERANCES[torch.float64]

"""``tfgw gpu`` compares the kernels of batch normalisation with PyTorch, here on an emulated GPU."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.nn.emulated_norm import launch_emulated
from tests.ot.cuda.emulation import COMPILER
from tfgw.nn import norm_check, norm_kernels
from tfgw.nn.norm_check import TOLERANCES, check_norm_kernels
from tfgw.nn.norm_kernels import Norm
from tfgw.ot.backends.cuda.units import NORM

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

Change = Callable[[Norm], None]


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Batches that are moved to "cuda" go to an emulated GPU. Gives the names of the kernels that it runs."""
    return emulate(monkeypatch, lambda norm: None)


def emulate(monkeypatch: pytest.MonkeyPatch, change: Change) -> list[str]:
    launched: list[str] = []

    def launch(name: str, blocks: int, norm: Norm, device: torch.device) -> None:
        launched.append(name)
        change(norm)
        launch_emulated(name, blocks, norm, device)

    computed = norm_check._computed

    def on_either(device: str, dtype: torch.dtype) -> list[Tensor]:
        monkeypatch.setattr(norm_kernels, "is_supported", lambda x: device == "cuda")
        return computed("cpu", dtype)

    monkeypatch.setattr(norm_check, "_computed", on_either)
    monkeypatch.setattr(norm_kernels, "launch", launch)
    monkeypatch.setattr(norm_check, "norm_origin", lambda device: "cache")
    monkeypatch.setattr(norm_check, "load_norm", lambda device: None)
    return launched


def test_every_kernel_agrees_with_pytorch(emulated: list[str]) -> None:
    checked = check_norm_kernels()
    assert checked.origin == "cache"
    assert checked.agrees
    assert set(emulated) == set(NORM.kernels)
    assert 0 < checked.difference < 1e-13
    assert 1e-9 < checked.difference_float32 < 1e-5


@pytest.mark.parametrize("field", ["eps", "momentum", "grad_stride"])
def test_wrong_results_are_found(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is in another kernel or result; padding is read where the stride is 0."""

    def change(norm: Norm) -> None:
        setattr(norm, field, 0 if field == "grad_stride" else 1.001 * getattr(norm, field) + 1e-3)

    emulate(monkeypatch, change)
    checked = check_norm_kernels()
    assert not checked.agrees
    assert checked.difference > TOLERANCES[torch.float64]

"""``tfgw gpu`` and what it calls: on an emulated GPU, and where something is missing."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ot.cuda.emulation import COMPILER, emulated_for_eager_calls
from tfgw.cli import main
from tfgw.nn.layer_check import CheckedLayers
from tfgw.ot import backends, gpu_check
from tfgw.ot.backends import cpu, cuda
from tfgw.ot.backends.cuda.compile import MISSING, Architecture
from tfgw.ot.backends.cuda.units import LAYERS
from tfgw.ot.gpu_check import CheckedKernels, Device, Setup, check_kernels, find_setup

H200 = Device(0, "NVIDIA H200", (9, 0), 139 << 30, 227 << 10, 132)
READY = Setup("2.11.0+cu130", "13.0", "13.0", "14.0.1", "13.0", (H200,))


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Problems that are moved to "cuda" go to an emulated GPU. Gives the names of the kernels that it runs."""
    gpu = emulated_for_eager_calls(monkeypatch)
    monkeypatch.setattr(gpu_check, "architecture_of", lambda index: Architecture(90))
    monkeypatch.setattr(gpu_check, "compile_ahead", lambda columns, architecture, several: {})
    monkeypatch.setattr(gpu_check, "origin", lambda units, columns, architecture: "compiler")
    monkeypatch.setattr(gpu_check, "SIZES", (5, 11, 24))
    solved = gpu_check._solved

    def on_either(example: Any, device: str, starts: int) -> list[Tensor]:
        monkeypatch.setattr(backends, "backend_of", lambda tensor: cuda if device == "cuda" else cpu)
        return solved(example, "cpu", starts)

    monkeypatch.setattr(gpu_check, "_solved", on_either)
    return gpu.launched


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("columns", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_kernels_agree_with_the_cpu(columns: int, emulated: list[str]) -> None:
    one, several = check_kernels([columns])
    assert (one.several, several.several) == (False, True)
    for checked in (one, several):
        assert checked.agrees
        assert 0 <= checked.value_difference < 1e-12
        assert 0 < checked.gradient_difference < 1e-10  # another way of summing
    assert {"tfgw_prepare", "tfgw_start", "tfgw_solve", "tfgw_backward_templates"} <= set(emulated)
    assert emulated.count("tfgw_starts_begin") == 2


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_wrong_results_are_found(emulated: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = gpu_check._solved

    def wrong(example: Any, device: str, starts: int) -> list[Tensor]:
        distances, *gradients = right(example, device, starts)
        if device == "cuda" and starts == 1:
            gradients[1] = gradients[1] * (1 + 1e-6)
        return [distances, *gradients]

    monkeypatch.setattr(gpu_check, "_solved", wrong)
    checked, several = check_kernels([16])
    assert not checked.agrees
    assert several.agrees
    assert checked.value_difference <= gpu_check.VALUE_TOLERANCE < checked.gradient_difference


def fake_machine(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """A machine with one H200 and everything that it needs, but for the changes."""
    found: dict[str, object] = {"cuda": "13.0", "driver": "13.0", "nvrtc": "13.0", "capability": (9, 0), "gpus": 1}
    found |= {"origin": "compiler", "origin of norms": "compiler"} | changes
    monkeypatch.setattr(torch.version, "cuda", found["cuda"])
    monkeypatch.setattr(gpu_check, "_driver_version", lambda: found["driver"])
    monkeypatch.setattr(gpu_check, "_cupy_version", lambda: None if found["nvrtc"] is None else "14.0.1")
    monkeypatch.setattr(gpu_check, "_compiler_version", lambda: found["nvrtc"])
    monkeypatch.setattr(
        gpu_check, "origin", lambda units, *_: found["origin of norms" if units == [LAYERS] else "origin"]
    )
    monkeypatch.setattr(gpu_check, "architecture_of", lambda index: Architecture(90))
    monkeypatch.setattr(gpu_check, "shared_memory", lambda index: 228 << 10)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(found["gpus"]))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found["gpus"])
    major, minor = found["capability"]  # type: ignore[misc]
    properties = SimpleNamespace(
        name="NVIDIA H200", major=major, minor=minor, total_memory=139 << 30, multi_processor_count=132
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)


def test_a_machine_that_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(monkeypatch)
    assert find_setup() == replace(READY, torch=torch.__version__)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cuda": None, "gpus": 0}, "built without CUDA: install a CUDA build"),
        ({"driver": None, "gpus": 0}, "no NVIDIA driver was found"),
        ({"gpus": 0}, "PyTorch finds no GPU that its CUDA 13.0 can use"),
        ({"capability": (7, 5)}, "NVIDIA H200 has compute capability 7.5, and the kernels need 8.0"),
        ({"nvrtc": None}, MISSING),
    ],
)
def test_one_sentence_says_what_is_missing(
    changes: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_machine(monkeypatch, **changes)
    for name in ("check_kernels", "check_layer_kernels"):
        monkeypatch.setattr(f"tfgw.cli.gpu.{name}", lambda *_: pytest.fail("nothing to check"))
    assert main(["gpu"]) == 1
    answer = capsys.readouterr().out
    assert answer.startswith("not ready: ")
    assert text in answer
    assert len(answer.splitlines()) == 1


def test_machine_code_of_the_package_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(monkeypatch, nvrtc=None, **{"origin": "package", "origin of norms": "package"})
    assert find_setup().missing is None
    fake_machine(monkeypatch, nvrtc=None, origin="package")
    assert find_setup().missing == MISSING


@pytest.mark.parametrize(
    ("solver", "norm", "text"),
    [
        (True, True, "ready: NVIDIA H200 gives the CPU's values and gradients"),
        (False, True, "not ready: results for templates of up to 128 nodes differ from the CPU's; please report it"),
        (True, False, "not ready: results of layers of networks differ from the CPU's; please report it"),
        (
            False,
            False,
            "not ready: results for templates of up to 128 nodes and of layers of networks differ from the CPU's;"
            " please report it",
        ),
    ],
)
def test_the_command_says_whether_results_agree(
    solver: bool, norm: bool, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = {
        16: CheckedKernels(16, "cache", 0.31, 2e-15, 3e-13),
        128: CheckedKernels(128, "compiler", 3.9, 2e-15, 3e-13 if solver else 3e-3, several=True),
    }
    monkeypatch.setattr("tfgw.cli.gpu.find_setup", lambda: READY)
    monkeypatch.setattr("tfgw.cli.gpu.check_kernels", lambda classes: (checked[columns] for columns in classes))
    norms = CheckedLayers("package", 0.04, 4e-16 if norm else 4e-2, 2e-7)
    monkeypatch.setattr("tfgw.cli.gpu.check_layer_kernels", lambda: norms)
    ready = solver and norm
    assert main(["gpu", "--classes", "16", "128"]) == int(not ready)
    out, err = capsys.readouterr()
    assert out == f"{text}\n"
    assert "templates of up to  16 nodes: 0.3 s (compiled earlier), as on the CPU" in err
    assert "templates of up to 128 nodes, several starts: 3.9 s (compiled), " in err
    verdict = "as on the CPU (to 4e-16, in single precision to 2e-07)" if norm else "NOT as on the CPU (to 4e-02"
    assert f"layers of networks: 0.0 s (came with tfgw), {verdict}" in err
    assert main(["gpu", "--classes", "16", "128", "--json"]) == int(not ready)
    data = json.loads(capsys.readouterr().out)
    assert data["ready"] is ready
    assert data["devices"][0]["capability"] == [9, 0]
    assert [kernels["seconds"] for kernels in data["kernels"]] == [0.31, 3.9]
    assert data["layers"]["agrees"] is norm


def test_a_size_class_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["gpu", "--classes", "33"])
    assert "must be one of 16, 32, 64, 128, 256, 512, got 33" in capsys.readouterr().err

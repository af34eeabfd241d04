"""The kernels of the layers of networks on a CPU: compiled by g++, each thread a fibre."""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.ot.cuda import emulation
from tfgw.nn.cuda import launching
from tfgw.ot.backends.cuda.compile import SOURCES


@cache
def kernels() -> ctypes.CDLL:
    assert emulation.COMPILER is not None
    file = Path(tempfile.mkdtemp(prefix="tfgw-emulation-")) / "layers.so"
    folders = [f"-I{folder}" for folder in (SOURCES, emulation.HERE)]
    command = [emulation.COMPILER, "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", *folders]
    subprocess.run([*command, "-o", file, Path(__file__).with_name("emulated_layers.cpp")], check=True)
    return ctypes.CDLL(str(file))


def launch_emulated(name: str, blocks: int, threads: int, argument: ctypes.Structure, device: torch.device) -> None:
    """Run a kernel where it would be launched."""
    getattr(kernels(), f"launch_{name}")(blocks, threads, ctypes.byref(argument))


def emulate(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the kernels where they would be launched, and return the list of those that ran."""
    names: list[str] = []

    def launch(name: str, blocks: int, threads: int, argument: ctypes.Structure, device: torch.device) -> None:
        names.append(name)
        launch_emulated(name, blocks, threads, argument, device)

    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(launching, "is_supported", lambda x: True)
    return names

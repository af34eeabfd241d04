"""No warning in an import, a solve or a training, on the CPU or a GPU: users could only ignore it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

# PyTorch Geometric's own import calls torch.jit.script, whether or not tfgw is there.
STRICT = ("-W", "error", "-W", "ignore:`torch.jit.script` is deprecated:DeprecationWarning")
SOLVE = """
import sys

import torch
from tfgw import ot

device = sys.argv[1]
x = torch.rand(5, 2, device=device, requires_grad=True)
edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]], device=device)
graphs = ot.GraphBatch(x, batch=torch.tensor([0, 0, 0, 1, 1], device=device), edge_index=edges)
templates = ot.Templates(torch.rand(3, 4, 2, device=device), structure=torch.rand(3, 4, 4, device=device))
ot.fgw(graphs, templates, alpha=0.5).distances.sum().backward()
ot.pairwise(graphs, alpha=0.5)
"""
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


def stderr_of(*arguments: str, cwd: Path, device: str) -> str:
    """What a command writes to its standard error stream, without the announcement of compiled kernels."""
    env = os.environ if device == "cuda" else {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return "".join(line for line in ended.stderr.splitlines(keepends=True) if "compiling the GPU kernels" not in line)


@pytest.mark.parametrize("module", ["tfgw.ot", "tfgw.cli"])
def test_an_import_raises_none(module: str, tmp_path: Path) -> None:
    assert stderr_of("-W", "error", "-c", f"import {module}", cwd=tmp_path, device="cpu") == ""


@pytest.mark.parametrize("device", DEVICES)
def test_a_solve_raises_none(device: str, tmp_path: Path) -> None:
    assert stderr_of("-W", "error", "-c", SOLVE, device, cwd=tmp_path, device=device) == ""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [
        ("--epochs", "2", "--validation", "0.2"),  # on a GPU, steps are recorded
        ("--epochs", "2", "--structure", "shortest_path"),  # not recorded
        ("--epochs", "2", "--recipe", "default", "--precision", "float32"),
        ("--model", "kernel"),
    ],
    ids=["recorded", "step-by-step", "default-recipe", "kernel-machine"],
)
def test_a_training_raises_none(options: tuple[str, ...], device: str, tmp_path: Path) -> None:
    run = ("--dataset", "4-CYCLES", "--accelerator", device, "--output", "run")
    said = stderr_of(*STRICT, "-m", "tfgw", "train", *run, *options, cwd=tmp_path, device=device)
    assert "in run" in said
    assert "warn" not in said.lower()

"""No warning in an import, a solve or a training, whoever would raise it: users could only ignore it."""

import os
import subprocess
import sys
from pathlib import Path

# PyTorch Geometric's own import calls torch.jit.script, whether or not tfgw is there.
STRICT = ("-W", "error", "-W", "ignore:`torch.jit.script` is deprecated:DeprecationWarning")
SOLVE = """
import torch
from tfgw import ot

x = torch.rand(5, 2, requires_grad=True)
edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
graphs = ot.GraphBatch(x, batch=torch.tensor([0, 0, 0, 1, 1]), edge_index=edges)
templates = ot.Templates(torch.rand(3, 4, 2), structure=torch.rand(3, 4, 4))
ot.fgw(graphs, templates, alpha=0.5).distances.sum().backward()
"""


def stderr_of(*arguments: str, cwd: Path) -> str:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def test_a_solve_raises_none(tmp_path: Path) -> None:
    assert stderr_of("-W", "error", "-c", SOLVE, cwd=tmp_path) == ""


def test_a_training_raises_none(tmp_path: Path) -> None:
    options = ("--dataset", "4-CYCLES", "--epochs", "2", "--validation", "0.2", "--output", "run")
    said = stderr_of(*STRICT, "-m", "tfgw", "train", *options, cwd=tmp_path)
    assert "training in run" in said
    assert "warn" not in said.lower()

"""Benchmarks that need what tests may lack still take their options."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"


def test_the_one_of_the_gpu_says_what_it_lacks() -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, SCRIPT, "--parts", "agreement", "--graphs", "3", "--epochs", "MUTAG=1"]
    ended = subprocess.run(command, env=hidden, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.strip().split("\n")[-1]) == (1, "gpu.py: no CUDA GPU")

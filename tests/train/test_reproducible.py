"""Same input, same output: bit for bit, whatever the process, its threads and its batches."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from tests.train.train_and_embed import train_and_embed

ROOT = Path(__file__).parents[2]


def test_another_process_with_other_threads_and_batches(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        expected = train_and_embed(threads=1, batch_size=64)
    finally:
        torch.set_num_threads(before)
    file = tmp_path / "found.pt"
    command = [sys.executable, "-m", "tests.train.train_and_embed", "3", "7", str(file)]
    environment = os.environ | {"OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "7"}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    found = torch.load(file)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name

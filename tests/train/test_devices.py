"""Two processes that share each batch do what one process does, batch normalisation included."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.train.run_on_devices import train

ROOT = Path(__file__).parents[2]


def test_two_processes_have_the_losses_and_weights_of_one(tmp_path: Path) -> None:
    file = tmp_path / "two.pt"
    subprocess.run([sys.executable, "-m", "tests.train.run_on_devices", str(file)], check=True, cwd=ROOT)
    records, weights = torch.load(file)
    model, result = train(1)
    for two, one in zip(records, result.records, strict=True):
        for name, value in one._asdict().items():
            assert two[name] == pytest.approx(value, abs=1e-6), name
    for name, tensor in model.state_dict().items():
        assert torch.allclose(weights[name], tensor, atol=1e-6), name

"""Two processes that share each batch do what one process does."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small import cycles_and_stars, small_model

from tfgw.train import TrainConfig, fit

SCRIPT = """
import sys
import torch
from small import cycles_and_stars, small_model
from test_devices import settings
from tfgw.train import fit

if __name__ == "__main__":
    train, validation = cycles_and_stars(), cycles_and_stars(9, seed=1)
    model = small_model(train)
    result = fit(model, train, validation, config=settings(devices=2))
    torch.save((result.records, model.state_dict()), sys.argv[1])
"""


def settings(*, devices: int) -> TrainConfig:
    # 24 graphs in batches of 10: the shares of two processes are equal in none but the last.
    return TrainConfig(epochs=4, batch_size=9, validate_every=2, accelerator="cpu", devices=devices)


@pytest.mark.timeout(100)
def test_two_processes_have_the_losses_and_weights_of_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}")
    subprocess.run([sys.executable, str(script), str(tmp_path / "two.pt")], check=True)
    records, weights = torch.load(tmp_path / "two.pt", weights_only=False)

    train, validation = cycles_and_stars(), cycles_and_stars(9, seed=1)
    model = small_model(train)
    result = fit(model, train, validation, config=settings(devices=1))
    for two, one in zip(records, result.records, strict=True):
        assert two.loss == pytest.approx(one.loss, abs=1e-6)
        assert two.score == one.score
        assert two.validation_score == one.validation_score
    for name, tensor in model.state_dict().items():
        assert torch.allclose(weights[name], tensor, atol=1e-6), name

"""``python -m tests.train.run_in_folder FOLDER``: a run that can be killed, and started again to go on."""

import sys
from pathlib import Path

from tests.train.small import cycles_and_stars, small_model
from tfgw.nn import TFGWModel
from tfgw.train import FitResult, TrainConfig, fit

CONFIG = TrainConfig(
    epochs=30, batch_size=7, validate_every=2, checkpoint_seconds=0, stratified=True, accelerator="cpu"
)


def train(folder: Path | None) -> tuple[TFGWModel, FitResult]:
    """Train, or go on with what is in the folder."""
    data, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    model = small_model(data, dropout=0.5)
    return model, fit(model, data, validation, config=CONFIG, folder=folder, resume=folder is not None)


if __name__ == "__main__":
    train(Path(sys.argv[1]))

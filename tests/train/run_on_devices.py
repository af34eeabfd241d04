"""``python -m tests.train.run_on_devices FILE``: train on two devices, write losses and weights."""

import sys

import torch

from tests.train.small import cycles_and_stars, small_model
from tfgw.nn import TFGWModel
from tfgw.train import FitResult, TrainConfig, fit


def train(devices: int) -> tuple[TFGWModel, FitResult]:
    """Train on 24 graphs in batches of 9, so that the devices' shares of a batch differ."""
    config = TrainConfig(epochs=4, batch_size=9, validate_every=2, accelerator="cpu", devices=devices)
    data, validation = cycles_and_stars(), cycles_and_stars(11, seed=1)
    model = small_model(data, layers=2)
    return model, fit(model, data, validation, config=config)


if __name__ == "__main__":
    model, result = train(2)
    torch.save(([record._asdict() for record in result.records], model.state_dict()), sys.argv[1])

"""What tests of training as CUDA graphs share, with a GPU or without."""

import gc

import pytest
import torch

from tests.train.small import cycles_and_stars, small_model
from tfgw.nn import TFGWModel
from tfgw.train import FitResult, TrainConfig, fit
from tfgw.train.captured import CapturedPass


def sizes_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the number of graphs of each batch that is replayed; -1 for one that has no room."""
    sizes: list[int] = []
    take = CapturedPass.take

    def noted(self: CapturedPass, graphs: torch.Tensor) -> bool:
        has_room = take(self, graphs)
        sizes.append(len(graphs) if has_room else -1)
        return has_room

    monkeypatch.setattr(CapturedPass, "take", noted)
    return sizes


def train(config: TrainConfig, *, graphs: int, validation: int, dropout: float = 0.0) -> tuple[TFGWModel, FitResult]:
    data = cycles_and_stars(graphs)
    model = small_model(data, layers=2, dropout=dropout)
    return model, fit(model, data, cycles_and_stars(validation, seed=1), config=config)


def held_after_trainings(config: TrainConfig, count: int) -> list[int]:
    """Bytes of the GPU that PyTorch cannot give back after each of some trainings."""
    held = []
    for _ in range(count):
        train(config, graphs=24, validation=13)
        gc.collect()
        torch.cuda.empty_cache()
        held.append(torch.cuda.memory_reserved())
    return held


def assert_same_training(one: tuple[TFGWModel, FitResult], other: tuple[TFGWModel, FitResult]) -> None:
    """To rounding, wherever the models are."""
    for record, expected in zip(one[1].records, other[1].records, strict=True):
        ours, theirs = ([value if value is not None else -1.0 for value in row] for row in (record, expected))
        assert ours == pytest.approx(theirs, rel=1e-7)
    assert one[1].kept == pytest.approx(other[1].kept)
    for name, tensor in other[0].state_dict().items():
        torch.testing.assert_close(one[0].state_dict()[name].cpu(), tensor.cpu(), rtol=1e-6, atol=1e-9, msg=name)

"""Recorded steps of a model without a solver: no GPU is needed, and calls take the place of replays."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.train.cuda_graph.training import assert_same_training, sizes_replayed
from tests.train.small import cycles_and_stars, regression_data
from tfgw.datasets import GraphDataset
from tfgw.nn import GINModel
from tfgw.train import FitResult, TrainConfig, fit, trainer
from tfgw.train.batches import shuffled

SHORT = TrainConfig(epochs=3, batch_size=5, validate_every=2, label_smoothing=0.2, accelerator="cpu", seed=3)


class StrictGIN(GINModel):
    """Raises an error for invalid graphs, as the solver does, but not while a step is replayed."""

    supports_padding = True
    is_replaying = False

    def forward(self, x: torch.Tensor, **others: Any) -> torch.Tensor:
        if not StrictGIN.is_replaying and not bool(x.isfinite().all()):
            raise ValueError("x: is not finite")
        return super().forward(x, **others)


class Calls:
    """Replaces the recorder of CUDA graphs."""

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        function()

        def replay() -> None:
            StrictGIN.is_replaying = True
            try:
                function()
            finally:
                StrictGIN.is_replaying = False

        return replay


class NoMemory:
    """A recorder on a GPU that is full."""

    def record(self, function: Callable[[], None]) -> None:
        function()
        raise torch.OutOfMemoryError


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes trainings record; the sizes of the batches that were replayed."""
    record_with(monkeypatch, Calls())
    return sizes_replayed(monkeypatch)


def record_with(monkeypatch: pytest.MonkeyPatch, recorder: Any) -> None:
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: None)
    monkeypatch.setattr(trainer, "recording", lambda: nullcontext(recorder))


def trained(train: GraphDataset, validation: GraphDataset | None, config: TrainConfig) -> tuple[GINModel, FitResult]:
    """The same weights at every call, before the training."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = StrictGIN(3, 1 if config.task == "regression" else 2, num_layers=2, width=4)
    return model, fit(model, train, validation, config=config)


@pytest.mark.parametrize("validation", [None, cycles_and_stars(7, seed=1)])
def test_recorded_steps_are_those_of_any_run(validation: GraphDataset | None, request: pytest.FixtureRequest) -> None:
    expected = trained(cycles_and_stars(12), validation, SHORT)
    sizes = request.getfixturevalue("replayed")
    found = trained(cycles_and_stars(12), validation, SHORT)
    train, check = [5, 5, 2], [] if validation is None else [5, 2]
    assert sizes == [*train, *train, *check, *train, *check]
    assert_same_training(found, expected)


def test_a_loss_that_is_not_finite_is_told_after_the_epoch(replayed: list[int]) -> None:
    data = regression_data(1)
    data = data.with_tensors({"y": data.stacked["y"] * 1e300})
    with pytest.raises(FloatingPointError, match="the loss of epoch 1 is not finite"):
        trained(data, None, TrainConfig(task="regression", batch_size=7, accelerator="cpu"))
    assert replayed


@pytest.mark.parametrize("part", ["train", "validation"])
def test_an_invalid_graph_is_told_as_by_any_run(part: str, replayed: list[int]) -> None:
    """It is in the second batch, which is not among those that are recorded."""
    data = {"train": cycles_and_stars(12), "validation": cycles_and_stars(12, seed=1)}
    order = shuffled(12, rng=np.random.default_rng([SHORT.seed, 1])) if part == "train" else torch.arange(12)
    data[part] = data[part].with_tensors({"x": data[part].stacked["x"].clone()})
    data[part].stacked["x"][int(data[part].slices["x"][int(order[7])]), 0] = torch.inf
    with pytest.raises(ValueError, match="x: is not finite"):
        trained(data["train"], data["validation"], SHORT)
    assert replayed


@pytest.mark.parametrize("part", ["train", "validation"])
def test_an_invalid_graph_is_told_before_anything_is_recorded(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"train": cycles_and_stars(12), "validation": cycles_and_stars(12, seed=1)}
    data[part] = data[part].with_node_features(lambda x: torch.full_like(x, torch.inf))

    class Unused:
        def __init__(self) -> None:
            self.allowed = 0 if part == "train" else 2  # one for each size of the training batches

        def record(self, function: Callable[[], None]) -> Callable[[], None]:
            self.allowed -= 1
            assert self.allowed >= 0
            return function

    record_with(monkeypatch, Unused())
    with pytest.raises(ValueError, match="x: is not finite"):
        trained(data["train"], data["validation"], SHORT)


def test_without_memory_steps_run_one_by_one(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    validation = cycles_and_stars(7, seed=1)
    expected = trained(cycles_and_stars(12), validation, SHORT)
    record_with(monkeypatch, NoMemory())
    with caplog.at_level(logging.WARNING, logger="tfgw"):
        found = trained(cycles_and_stars(12), validation, SHORT)
    assert [record.message for record in caplog.records if record.name == "tfgw"] == [
        "tfgw: not enough GPU memory to record steps as CUDA graphs; they run one by one, which is slower"
    ]
    assert_same_training(found, expected)


@pytest.mark.parametrize(
    ("processes", "precision", "reason"),
    [
        (2, "float64", "several processes share each batch"),
        (1, "bf16", "the precision is bf16"),
        (1, "float64", "none of these"),
    ],
)
def test_runs_that_are_not_recorded(
    processes: int, precision: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "none of these")
    run = SimpleNamespace(
        fabric=SimpleNamespace(world_size=processes), config=replace(SHORT, precision=precision), module=None
    )
    assert trainer.Trainer._unsupported_reason(run, []) == reason

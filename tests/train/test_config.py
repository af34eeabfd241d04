"""Settings of a training run: what they are by default, and which values have a meaning."""

from typing import Any

import pytest

from tfgw.train import TrainConfig


def test_defaults_are_the_papers() -> None:
    """Adam with a constant rate, and nothing that the paper does not mention: no decay, smoothing or early stopping."""
    config = TrainConfig()
    assert (config.task, config.epochs, config.batch_size, config.lr, config.validate_every) == (
        "classification", 500, 128, 0.01, 5,
    )  # fmt: skip
    assert (config.betas, config.template_lr, config.schedule) == ((0.9, 0.99), None, "constant")
    assert (config.weight_decay, config.label_smoothing, config.patience) == (0, 0, None)
    assert config.selection == "running"
    assert (config.fresh_statistics, config.stratified, config.balanced_batches) == (False, False, False)
    assert (config.precision, config.accelerator, config.devices, config.seed) == ("float64", "auto", 1, 0)
    assert config.checkpoint_seconds == 10


SMALLEST = {
    "epochs": 1,
    "batch_size": 1,
    "validate_every": 1,
    "devices": 1,
    "patience": 1,
    "seed": 0,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "lr": 5e-324,
    "template_lr": 5e-324,
}


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_value_of_a_setting(name: str) -> None:
    smallest = SMALLEST[name]
    assert getattr(TrainConfig(**{name: smallest}), name) == smallest
    too_small = smallest - 1 if isinstance(smallest, int) else 0.0 if smallest else -5e-324
    with pytest.raises(ValueError, match=rf"^{name}: must .*, got {too_small}$"):
        TrainConfig(**{name: too_small})


@pytest.mark.parametrize("name", ["weight_decay", "label_smoothing"])
def test_shares_are_less_than_one(name: str) -> None:
    assert getattr(TrainConfig(**{name: 1 - 2**-53}), name) < 1
    with pytest.raises(ValueError, match=rf"^{name}: must be at least 0 and less than 1, got 1\.0"):
        TrainConfig(**{name: 1.0})


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("task", ["classification", "regression", "multilabel"]),
        ("precision", ["float64", "float32", "bf16"]),
        ("schedule", ["constant", "one_cycle", "halved"]),
        ("selection", ["running", "evaluated"]),
    ],
)
def test_names_of_settings(name: str, allowed: list[str]) -> None:
    for value in allowed:
        assert getattr(TrainConfig(**{name: value}), name) == value
    with pytest.raises(ValueError, match=rf"^{name}: must be one of {', '.join(allowed)}, got 'other'"):
        TrainConfig(**{name: "other"})


@pytest.mark.parametrize("changes", [{"stratified": True}, {"balanced_batches": True}, {"label_smoothing": 0.1}])
@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_settings_of_classification_only(changes: dict[str, Any], task: str) -> None:
    TrainConfig(**changes)
    (name,) = changes
    with pytest.raises(ValueError, match=rf"^{name}: only for classification, but task is '{task}'"):
        TrainConfig(**changes, task=task)


def test_batches_are_stratified_or_balanced() -> None:
    with pytest.raises(ValueError, match="balanced_batches: cannot be combined with stratified"):
        TrainConfig(stratified=True, balanced_batches=True)

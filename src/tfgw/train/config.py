"""How to train, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

import torch

from tfgw.train.schedules import Schedule
from tfgw.train.tasks import Task

Precision = Literal["float64", "float32", "bf16"]

DTYPES: dict[Precision, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16": torch.float32,
}
"""Of weights and batches."""

Config = TypeVar("Config")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of one training run; the defaults are the paper's.

    Args:
        task: What is learned: ``"classification"``, ``"regression"`` or ``"multilabel"``.
        epochs: Passes over the training graphs.
        batch_size: Graphs per optimiser step, over all devices together. A last batch with fewer than two
            graphs per device joins the one before it.
        lr: Learning rate of Adam.
        template_lr: Learning rate of the templates (structure, features, weights and α); ``None``: the same.
        betas: Decay rates of Adam.
        weight_decay: Decoupled weight decay (AdamW) of the networks; templates do not decay.
        schedule: How learning rates change: ``"constant"``, or ``"one_cycle"``, up from 0 during the first tenth of
            all steps and then down to 0 along a cosine.
        label_smoothing: Share of a training target that is spread evenly over all classes.
        fresh_statistics: Whether the statistics of batch normalisation are computed anew from the training graphs
            before the model is evaluated, rather than as moving averages, which lag behind the weights.
        validate_every: Epochs between two validations.
        checkpoint_seconds: Time between two checkpoints, the most that a killed run loses (up to a whole epoch).
        patience: Stop once no validation in this many epochs gave a model worth keeping; ``None``: never.
        stratified: Whether every batch has the class proportions of the training graphs.
        precision: Of the networks: ``"float64"``, ``"float32"``, or ``"bf16"`` (weights in float32, matrix
            products in bfloat16). The solver always computes in float64.
        accelerator: ``"cpu"``, ``"cuda"``, or ``"auto"`` for the best there is.
        devices: Processes that share each batch. With more than one, a script that trains needs the usual
            ``if __name__ == "__main__":``.
        seed: Of the order of graphs and of dropout. Equal seeds give equal weights: on a CPU bit for bit, on a GPU to
            rounding, for there PyTorch adds up over edges in any order.
    """

    task: Task = "classification"
    epochs: int = 500
    batch_size: int = 128
    lr: float = 0.01
    template_lr: float | None = None
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    label_smoothing: float = 0.0
    fresh_statistics: bool = False
    validate_every: int = 5
    checkpoint_seconds: float = 10.0
    patience: int | None = None
    stratified: bool = False
    precision: Precision = "float64"
    accelerator: str = "auto"
    devices: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "validate_every", "devices"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1, got {getattr(self, name)}")
        for name in ("lr", "template_lr"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}: must be positive, got {value}")
        for name in ("weight_decay", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 0 and below 1, got {getattr(self, name)}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience: must be at least 1, got {self.patience}")
        if self.seed < 0:
            raise ValueError(f"seed: must not be negative, got {self.seed}")
        _one_of("task", self.task, get_args(Task))
        _one_of("precision", self.precision, get_args(Precision))
        _one_of("schedule", self.schedule, get_args(Schedule))
        for name in ("stratified", "label_smoothing"):
            if getattr(self, name) and self.task != "classification":
                raise ValueError(f"{name}: needs classes, but task is {self.task!r}")


def config_from(kind: type[Config], values: Mapping[str, Any], **known: Any) -> Config:
    """A dataclass of settings, made of ``known`` and of those ``values`` that it has fields for."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names} | known)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: must be one of {', '.join(allowed)}, got {value!r}")

"""Training settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

import torch

from tfgw.train.history import Selection
from tfgw.train.schedules import Schedule
from tfgw.train.tasks import Task

Precision = Literal["float64", "float32", "bf16"]

DTYPES: dict[Precision, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16": torch.float32,
}
"""Floating-point types of weights and batches."""

Config = TypeVar("Config")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of a training run. The defaults are those of the paper.

    Args:
        task: Kind of prediction: ``"classification"``, ``"regression"`` or ``"multilabel"``.
        epochs: Passes over the training graphs.
        batch_size: Graphs per optimiser step, summed over all devices. A last batch with fewer than two graphs per
            device is merged with the previous one.
        lr: Learning rate of Adam.
        template_lr: Learning rate of the templates (structure, features, weights and α). ``None`` means the same as
            ``lr``.
        betas: Decay rates of Adam.
        weight_decay: Decoupled weight decay (AdamW) of the encoder and the head. Templates have no weight decay.
        schedule: Learning rate schedule: ``"constant"``, ``"one_cycle"``, a linear warm-up over the first tenth of all
            steps followed by a cosine decay to 0, or ``"halved"``, by one half after every 50 epochs.
        label_smoothing: Label smoothing of the cross-entropy loss, in [0, 1).
        fresh_statistics: Whether to recompute the statistics of batch normalisation from the training graphs before
            each evaluation, instead of using moving averages, which lag behind the weights.
        validate_every: Number of epochs between two validations.
        selection: Training score of the rule that selects the best epoch by its scores on training and validation
            graphs: ``"running"``, measured during the epoch, or ``"evaluated"``, measured after it in evaluation mode.
            With ``"evaluated"``, the validation score must reach the best so far, even if that epoch was not kept.
        checkpoint_seconds: Time between two checkpoints. Checkpoints are saved only at the end of an epoch.
        patience: Number of epochs without improvement on the validation graphs after which training stops. ``None``
            disables early stopping.
        stratified: Whether to draw batches with the class proportions of the training graphs.
        balanced_batches: Whether to draw batches with equally many graphs of each class, independently for each step.
            An epoch has as many steps as a pass over the training graphs. A class with too few graphs for a batch
            repeats them.
        precision: Precision of the encoder and the head: ``"float64"``, ``"float32"``, or ``"bf16"`` (weights in
            float32, matrix products in bfloat16). The solver always computes in float64.
        accelerator: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        devices: Number of processes for data-parallel training. With more than one, a training script must be guarded
            by ``if __name__ == "__main__":``.
        seed: Random seed for batch order and dropout. Equal seeds give equal weights: bit for bit on a CPU, up to
            rounding on a GPU, because PyTorch sums over edges in a non-deterministic order there.
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
    selection: Selection = "running"
    checkpoint_seconds: float = 10.0
    patience: int | None = None
    stratified: bool = False
    balanced_batches: bool = False
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
                raise ValueError(f"{name}: must be at least 0 and less than 1, got {getattr(self, name)}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience: must be at least 1, got {self.patience}")
        if self.seed < 0:
            raise ValueError(f"seed: must not be negative, got {self.seed}")
        _one_of("task", self.task, get_args(Task))
        _one_of("precision", self.precision, get_args(Precision))
        _one_of("schedule", self.schedule, get_args(Schedule))
        _one_of("selection", self.selection, get_args(Selection))
        for name in ("stratified", "balanced_batches", "label_smoothing"):
            if getattr(self, name) and self.task != "classification":
                raise ValueError(f"{name}: only for classification, but task is {self.task!r}")
        if self.stratified and self.balanced_batches:
            raise ValueError("balanced_batches: cannot be combined with stratified")


def config_from(kind: type[Config], values: Mapping[str, Any], **known: Any) -> Config:
    """Create a dataclass of settings from ``known`` and from the ``values`` that it has fields for."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names} | known)


def device_of(accelerator: str) -> str:
    """Return the device of an accelerator: ``"cpu"``, ``"cuda"``, or the better one for ``"auto"``."""
    if accelerator not in ("auto", "cpu", "cuda"):
        raise ValueError(f"accelerator: must be 'auto', 'cpu' or 'cuda', got {accelerator!r}")
    if accelerator == "cuda" and not torch.cuda.is_available():
        raise ValueError("accelerator: PyTorch finds no GPU; use 'cpu' or 'auto'")
    return "cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: must be one of {', '.join(allowed)}, got {value!r}")

"""The state of a training run between two epochs, on disk.

A checkpoint holds everything that the rest of the run depends on: weights, optimiser state, the best model, and the
metrics so far. It does not store the state of random generators, because the seed of every epoch is derived from the
seed of the run and the number of the epoch.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfgw.train.config import TrainConfig
from tfgw.train.history import EpochRecord, Kept, describe_records, read_records
from tfgw.train.schedules import depends_on_epochs
from tfgw.train.tensor_file import FileError, read_tensors, write_tensors

FILE_NAME = "checkpoint.safetensors"
KIND = "checkpoint"


@dataclass
class Progress:
    """Progress of a run: finished epochs, their records, and the best model with its weights."""

    epoch: int = 0
    records: list[EpochRecord] = field(default_factory=list)
    kept: Kept | None = None
    kept_weights: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0  # total time of all epochs


def save_checkpoint(
    folder: Path, progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer, config: TrainConfig
) -> None:
    """Save the current state as the checkpoint in ``folder``, replacing the previous one."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"kept/{name}": tensor for name, tensor in progress.kept_weights.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(value) for name, value in state.items()}
    description = {
        "config": asdict(config),
        "epoch": progress.epoch,
        "seconds": progress.seconds,
        **describe_records(progress.records, progress.kept),
    }
    write_tensors(folder / FILE_NAME, tensors, description, kind=KIND)


def load_checkpoint(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, config: TrainConfig) -> Progress:
    """Restore model and optimiser from the checkpoint, and return the progress of the run.

    Raises:
        FileError: If the file is missing, damaged, not a checkpoint, or the checkpoint of another run.
    """
    path = folder / FILE_NAME
    tensors, description = read_tensors(path, kind=KIND)
    try:
        _check_same_run(path, description["config"], config)
        progress = _progress(tensors, description)
        _load_weights(path, model, tensors, progress)
        state = _optimizer_state(tensors, optimizer)
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path}: not a valid checkpoint ({error!r})") from error
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return progress


def _load_weights(path: Path, model: nn.Module, tensors: dict[str, Tensor], progress: Progress) -> None:
    try:
        if progress.kept is not None:  # check now that they fit the model at the end of the run
            model.load_state_dict(progress.kept_weights)
        model.load_state_dict(_part(tensors, "model"))
    except RuntimeError as error:
        raise FileError(f"{path}: belongs to a model with a different architecture") from error


def _progress(tensors: dict[str, Tensor], description: dict[str, Any]) -> Progress:
    records, kept = read_records(description)
    if [record.epoch for record in records] != list(range(1, len(records) + 1)) or description["epoch"] != len(records):
        raise ValueError("the number of records differs from the number of epochs")
    if kept is not None and not 1 <= kept.epoch <= len(records):
        raise ValueError(f"kept epoch {kept.epoch} of {len(records)}")
    seconds = description.get("seconds", 0.0)
    if not isinstance(seconds, int | float):
        raise ValueError(f"{seconds!r} seconds")
    return Progress(len(records), records, kept, _part(tensors, "kept"), seconds)


def _optimizer_state(tensors: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Tensor]]:
    """Return the optimiser state by parameter index: scalars, and tensors of the parameter's shape."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in _part(tensors, "optimizer").items():
        number, name = key.split("/")
        state.setdefault(int(number), {})[name] = tensor
    if len({frozenset(names) for names in state.values()}) > 1 or not all(0 <= n < len(parameters) for n in state):
        raise ValueError("the optimiser state belongs to another optimiser")
    for index, entries in state.items():
        if not all(tensor.shape in ((), parameters[index].shape) for tensor in entries.values()):
            raise ValueError("the optimiser state does not fit the parameters")
    return state


def training_seconds(folder: Path) -> float:
    """Return the total time of all epochs of the run in ``folder``, including those before it was resumed."""
    _, description = read_tensors(folder / FILE_NAME, kind=KIND)
    return float(description.get("seconds", 0.0))


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(f"{prefix}/"): t for key, t in tensors.items() if key.startswith(f"{prefix}/")}


def _check_same_run(path: Path, stored: dict[str, Any], config: TrainConfig) -> None:
    """Check the settings. Those that have not affected the run may differ, so that a finished run can be extended."""
    wanted = asdict(config) | {"betas": list(config.betas)}
    may_differ = {"checkpoint_seconds"} | (set() if depends_on_epochs(config.schedule) else {"epochs"})
    for name in wanted.keys() - may_differ:
        if stored.get(name) != wanted[name]:
            raise FileError(
                f"{path}: was created with {name}={stored.get(name)!r}, cannot continue with {wanted[name]!r}"
            )

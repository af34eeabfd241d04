"""The score that is explained, as a weighted sum of outputs, and the precision of explanations."""

import torch
from torch import Tensor

from tfgw.train.tasks import Task


def chosen_target(task: Task, outputs: Tensor, target: int | None) -> int:
    """Return the index of the explained output: ``target``, else the predicted class or the first output."""
    if target is None:
        return int(outputs.argmax()) if task == "classification" else 0
    if not 0 <= target < len(outputs):
        raise ValueError(f"target: must be from 0 to {len(outputs) - 1}, got {target}")
    return target


def score_weights(task: Task, count: int, target: int) -> Tensor:
    """Return the weights of the outputs in the score: the output of a class minus the mean of the others."""
    is_class = task == "classification" and count > 1
    weights = torch.full((count,), -1 / (count - 1) if is_class else 0.0, dtype=torch.float64)
    weights[target] = 1
    return weights


def double(value: Tensor) -> Tensor:
    """Return a tensor on the CPU, in double precision unless it contains integers."""
    return value.detach().cpu().double() if value.is_floating_point() else value.detach().cpu()

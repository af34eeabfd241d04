"""Learning tasks: the loss that training minimises, and the score that selects a model (higher is better)."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

Task = Literal["classification", "regression", "multilabel"]

SCORE_NAMES: dict[Task, str] = {
    "classification": "accuracy",
    "regression": "negative_mse",
    "multilabel": "accuracy",
}


class Sums(NamedTuple):
    """Loss and score summed over graphs; values and labels of one graph are averaged."""

    loss: Tensor
    score: Tensor


def sums(task: Task, outputs: Tensor, y: Tensor, *, label_smoothing: float = 0.0) -> Sums:
    """Loss (differentiable) and score of the ``outputs`` of a model for the targets ``y``.

    ==================  ===================================  ==============================================
    ``classification``  cross-entropy                        correct predictions
    ``multilabel``      binary cross-entropy                 correct labels, as a share of a graph's labels
    ``regression``      squared error                        minus the squared error
    ==================  ===================================  ==============================================

    ``label_smoothing`` is the share of a target that is spread evenly over all classes.
    """
    if task == "classification":
        loss = functional.cross_entropy(outputs, y, reduction="sum", label_smoothing=label_smoothing)
        return Sums(loss, (outputs.detach().argmax(1) == y).sum().to(outputs))
    target = y.to(outputs).reshape(len(y), -1)
    if target.shape != outputs.shape:
        raise ValueError(f"y: {target.shape[1]} values per graph, but the model gives {outputs.shape[1]}")
    if task == "multilabel":
        loss = functional.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        correct = ((outputs.detach() > 0) == (target > 0.5)).to(outputs)
        return Sums(loss.mean(1).sum(), correct.mean(1).sum())
    error = (outputs - target).square().mean(1).sum()
    return Sums(error, -error.detach())


def decide(task: Task, outputs: Tensor) -> Tensor:
    """Predictions: class numbers ``(B,)``, 0/1 labels ``(B, labels)`` or values ``(B, values)``."""
    if task == "classification":
        return outputs.argmax(1)
    return (outputs > 0).long() if task == "multilabel" else outputs


def probabilities(task: Task, outputs: Tensor) -> Tensor:
    """Class probabilities (rows sum to 1), or the probability of each label."""
    if task == "regression":
        raise ValueError("task: a regression has no probabilities")
    return torch.softmax(outputs, 1) if task == "classification" else torch.sigmoid(outputs)

"""Learning tasks: the loss that training minimises, and the score that selects a model (higher is better)."""

from typing import Literal, NamedTuple, cast

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


def sums(
    task: Task, outputs: Tensor, y: Tensor, *, label_smoothing: float = 0.0, weights: Tensor | None = None
) -> Sums:
    """Loss (differentiable) and score of the ``outputs`` of a model for the targets ``y``.

    ==================  ===================================  ==============================================
    ``classification``  cross-entropy                        correct predictions
    ``multilabel``      binary cross-entropy                 correct labels, as a share of a graph's labels
    ``regression``      squared error                        minus the squared error
    ==================  ===================================  ==============================================

    ``label_smoothing`` applies to the cross-entropy of classification. The loss of each graph is multiplied by its
    entry of ``weights``; the score is not. For outputs of an ensemble, ``(num_members, num_graphs, out_channels)``,
    loss and score are computed for each member and averaged.
    """
    if outputs.dim() == 3:
        members = len(outputs)
        each = [None if part is None else part.expand(members, *part.shape).flatten(0, 1) for part in (y, weights)]
        targets = cast(Tensor, each[0])
        found = sums(task, outputs.flatten(0, 1), targets, label_smoothing=label_smoothing, weights=each[1])
        return Sums(found.loss / members, found.score / members)
    if task == "classification":
        score = (outputs.detach().argmax(1) == y).sum().to(outputs)
        if weights is None:
            return Sums(functional.cross_entropy(outputs, y, reduction="sum", label_smoothing=label_smoothing), score)
        losses = functional.cross_entropy(outputs, y, reduction="none", label_smoothing=label_smoothing)
        return Sums(_total(losses, weights), score)
    target = y.to(outputs).reshape(len(y), -1)
    if target.shape != outputs.shape:
        raise ValueError(f"y: has {target.shape[1]} values per graph, but the model has {outputs.shape[1]} outputs")
    if task == "multilabel":
        loss = functional.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        correct = ((outputs.detach() > 0) == (target > 0.5)).to(outputs)
        return Sums(_total(loss.mean(1), weights), correct.mean(1).sum())
    errors = (outputs - target).square().mean(1)
    return Sums(_total(errors, weights), -errors.detach().sum())


def _total(losses: Tensor, weights: Tensor | None) -> Tensor:
    return (losses if weights is None else losses * weights).sum()


def decide(task: Task, outputs: Tensor) -> Tensor:
    """Predictions: class numbers ``(B,)``, 0/1 labels ``(B, labels)`` or values ``(B, values)``."""
    if task == "classification":
        return outputs.argmax(1)
    return (outputs > 0).long() if task == "multilabel" else outputs


def probabilities(task: Task, outputs: Tensor) -> Tensor:
    """Class probabilities (rows sum to 1), or the probability of each label."""
    if task == "regression":
        raise ValueError("task: regression has no probabilities")
    return torch.softmax(outputs, 1) if task == "classification" else torch.sigmoid(outputs)

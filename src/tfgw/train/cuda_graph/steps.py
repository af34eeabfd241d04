"""The recorded steps: training or validation on a padded batch, without decisions on the host."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from tfgw.nn.cuda.adam_kernel import step_if_finite
from tfgw.nn.padding import use_padding
from tfgw.train.cuda_graph.padded_batches import PaddedBatch
from tfgw.train.evaluate import evaluation_mode
from tfgw.train.tasks import Task, sums

Step = Callable[[PaddedBatch], Tensor]
"""Returns the sums of loss and score over the graphs of a batch, in float64."""


def training_step(model: nn.Module, optimizer: torch.optim.Adam, task: Task, *, label_smoothing: float = 0.0) -> Step:
    """Return a step of a fused optimiser, which changes nothing if the loss is not finite."""
    for group in optimizer.param_groups:
        group["capturable"] = True

    def step(batch: PaddedBatch) -> Tensor:
        with use_padding(batch.rows):
            outputs = model(**batch.inputs)
            measured = sums(task, outputs, batch.y, label_smoothing=label_smoothing, weights=batch.weights)
        loss = measured.loss / len(batch.y)
        if hasattr(model, "auxiliary_loss"):
            loss = loss + cast(Tensor, model.auxiliary_loss)
        loss.backward()
        step_if_finite(optimizer, measured.loss.detach())
        return torch.stack([measured.loss.detach(), measured.score]).double()

    return step


def validation_step(model: nn.Module, task: Task) -> Step:
    """Return a step that computes loss and score only."""

    def step(batch: PaddedBatch) -> Tensor:
        with evaluation_mode(model), use_padding(batch.rows):
            return torch.stack(sums(task, model(**batch.inputs), batch.y)).double()

    return step


@contextmanager
def restored(model: nn.Module, optimizer: torch.optim.Adam) -> Iterator[None]:
    """Restore weights and optimiser state after the block, in the same memory."""
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    moments = {parameter: {k: v.clone() for k, v in state.items()} for parameter, state in optimizer.state.items()}
    try:
        yield
    finally:
        model.load_state_dict(weights)
        for parameter, state in optimizer.state.items():
            for name, tensor in state.items():
                before = moments.get(parameter)
                tensor.zero_() if before is None else tensor.copy_(before[name])  # Adam starts from zeros

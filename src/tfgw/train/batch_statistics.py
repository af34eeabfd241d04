"""Statistics of batch normalisation for evaluation.

In training mode, batches are normalised by their own means and variances; in evaluation mode, by moving averages of
them. The averages lag behind the weights, so after a short training a model can perform much worse in evaluation mode.
"""

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from tfgw.train.batches import Batch


@torch.no_grad()
def refresh_statistics(model: nn.Module, batches: Iterable[Batch]) -> None:
    """Recompute the running statistics of batch normalisation as means over these batches, with the current weights."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm) and module.track_running_stats]
    if not norms:
        return
    was_training, momenta = model.training, [norm.momentum for norm in norms]
    model.train()
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    try:
        for batch in batches:
            model(**batch.inputs)
    finally:
        model.train(was_training)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

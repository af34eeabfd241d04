"""Statistics of batch normalisation for evaluation.

In training, batches are normalised by their own means and variances, in evaluation by moving averages of them. These
lag behind the weights: after a short training, a model may be much worse in evaluation than it was in training.
"""

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from tfgw.train.batches import Batch


@torch.no_grad()
def refresh_statistics(model: nn.Module, batches: Iterable[Batch]) -> None:
    """Replace the running statistics of batch normalisation by their means over these batches, with current weights."""
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

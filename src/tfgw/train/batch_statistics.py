"""Statistics of batch normalisation for evaluation.

In training mode, batches are normalised by their own means and variances; in evaluation mode, by moving averages of
them. The averages lag behind the weights, so after a short training a model can perform much worse in evaluation mode.

The variance of a channel that is the same for all training graphs, such as the number of atoms of an element that none
of them contains, counts as 1. Divided by the root of 0 + ε, another value in a new graph would be 316 times as large.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from tfgw.nn.batch_norm import is_constant
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
        for norm in norms:
            variance = cast(Tensor, norm.running_var)
            variance.masked_fill_(is_constant(variance, norm.eps), 1)
    finally:
        model.train(was_training)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

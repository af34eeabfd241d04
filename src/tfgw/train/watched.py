"""Whether somebody wants to see what a model computes, step by step."""

import torch
from torch import nn
from torch.nn.modules import module as of_all_modules

from tfgw.ot.tracing import is_eager


def is_watched(model: nn.Module) -> bool:
    """Whether there are hooks, or modes that trace, compile or check what is computed; or a loss besides the usual."""
    anywhere = any(_hooks(vars(of_all_modules), "_global_")) or torch.is_anomaly_enabled() or not is_eager()
    in_modules = any(any(_hooks(vars(module), "_")) or module._compiled_call_impl for module in model.modules())
    in_parameters = any(p._backward_hooks or p._post_accumulate_grad_hooks for p in model.parameters())
    return anywhere or in_modules or in_parameters or hasattr(model, "auxiliary_loss")


def _hooks(names: dict[str, object], prefix: str) -> list[object]:
    """All that is registered under a name like ``_forward_hooks``, with that prefix."""
    kinds = ("hooks", "hooks_always_called", "hooks_with_kwargs")
    found = {name: kept for name, kept in names.items() if name.startswith(prefix) and name.endswith(kinds)}
    return [kept for name, kept in found.items() if "state_dict" not in name]  # those are not called in a step

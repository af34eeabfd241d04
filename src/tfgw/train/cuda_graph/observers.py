"""Detect hooks or tracing that a replay would bypass, because it does not run Python code."""

import torch
from torch import nn
from torch.nn.modules import module as all_modules

from tfgw.ot.tracing import is_eager


def has_observers(model: nn.Module) -> bool:
    """Whether hooks are registered, or a mode traces, compiles or checks what is computed."""
    global_hooks = any(_hooks(vars(all_modules), "_global_")) or torch.is_anomaly_enabled() or not is_eager()
    module_hooks = any(any(_hooks(vars(module), "_")) or module._compiled_call_impl for module in model.modules())
    parameter_hooks = any(p._backward_hooks or p._post_accumulate_grad_hooks for p in model.parameters())
    return global_hooks or module_hooks or parameter_hooks


def _hooks(attributes: dict[str, object], prefix: str) -> list[object]:
    """Everything registered under names such as ``_forward_hooks`` that start with the prefix."""
    kinds = ("hooks", "hooks_always_called", "hooks_with_kwargs")
    found = {name: hooks for name, hooks in attributes.items() if name.startswith(prefix) and name.endswith(kinds)}
    return [hooks for name, hooks in found.items() if "state_dict" not in name]  # not called in a step

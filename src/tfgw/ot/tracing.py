"""Detect tracing, transforms and interception: whether PyTorch runs operations eagerly."""

import torch
from torch.autograd import forward_ad


def is_eager() -> bool:
    """Whether operations run eagerly: nothing traces, transforms or intercepts them."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state()
        or forward_ad._current_level >= 0
    )


def is_transformed() -> bool:
    """Whether a transform of :mod:`torch.func` or forward-mode differentiation is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0

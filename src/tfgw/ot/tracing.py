"""Whether PyTorch runs operations as they come, or somebody traces, transforms or intercepts them."""

import torch
from torch.autograd import forward_ad


def is_eager() -> bool:
    """Whether nobody traces, transforms or intercepts what is computed."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state()
        or forward_ad._current_level >= 0
    )


def is_transformed() -> bool:
    """Whether a transform of :mod:`torch.func` or forward mode differentiates or batches what is computed."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0

"""Whether PyTorch runs operations as they come, or somebody traces, transforms or intercepts them."""

import torch


def is_eager() -> bool:
    """Whether nobody traces, transforms or intercepts what is computed."""
    return not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state()
    )

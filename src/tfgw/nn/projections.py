"""Projections onto constraint sets: the probability simplex, and intervals."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tfgw.nn.constraints import Constraint
from tfgw.nn.cuda import projection_kernel


def project_simplex(v: Tensor) -> Tensor:
    """Euclidean projection of each row (last dimension) onto the probability simplex. Entries can become exactly 0.

    The projection is max(v − θ, 0) for the θ at which the row sums to 1; with the entries sorted in decreasing order, θ
    follows from the longest prefix whose members all stay positive. The projection is invariant to a shift of the row,
    so its largest entry is first shifted to 0: the positive entries are then small, and their sum is accurate.
    """
    v = v - v.amax(-1, keepdim=True)
    ordered = v.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(-1) - 1
    rank = torch.arange(1, v.shape[-1] + 1, device=v.device, dtype=v.dtype)
    support = (ordered * rank > excess).sum(-1, keepdim=True)
    theta = excess.gather(-1, support - 1) / support
    return (v - theta).clamp_min(0)


@torch.no_grad()
def project_(constraints: Sequence[Constraint]) -> None:
    """Project tensors onto their constraint sets, in place and together: in small operations, the number of calls
    determines the time."""
    alike: dict[object, list[Constraint]] = {}
    for one in constraints:
        alike.setdefault((one.tensor.dtype, one.tensor.device), []).append(one)
    for group in alike.values():
        if all(projection_kernel.is_supported(tensor) for tensor, _ in group):
            projection_kernel.project_(group)
        else:
            _project_by_operations_(group)


def _project_by_operations_(constraints: Sequence[Constraint]) -> None:
    """Project tensors of the same precision and device by PyTorch operations, all rows of equal length at once."""
    rows: dict[int, list[Tensor]] = {}
    for tensor, interval in constraints:
        if interval is None:
            rows.setdefault(tensor.shape[-1], []).append(tensor)
        else:
            tensor.clamp_(*interval)
    for tensors in rows.values():
        projected = project_simplex(torch.cat(tensors)).split([len(tensor) for tensor in tensors])
        torch._foreach_copy_(tensors, projected)

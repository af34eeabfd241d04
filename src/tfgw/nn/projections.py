"""Projection onto the probability simplex."""

import torch
from torch import Tensor


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

"""Concatenated graphs."""

from collections.abc import Sequence

import torch
from torch import Tensor


def graph_of_each_node(sizes: Sequence[int]) -> Tensor:
    """Return ``batch`` as in PyTorch Geometric."""
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))

"""Graphs stacked one after the other."""

from collections.abc import Sequence

import torch
from torch import Tensor


def graph_of_each_node(sizes: Sequence[int]) -> Tensor:
    """``batch`` as PyTorch Geometric knows it."""
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))

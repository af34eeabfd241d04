"""A layer to test."""

from typing import Any

import torch

from tests.nn.graphs import CHANNELS
from tfgw.nn import TFGWPooling

K, M = 3, 8  # templates, and nodes of each


def make_layer(seed: int = 0, **options: Any) -> TFGWPooling:
    torch.manual_seed(seed)
    return TFGWPooling(CHANNELS, K, M, **options).double()

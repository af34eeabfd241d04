"""Threads: one for the networks, all for the solver."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tfgw.nn.tfgw_pooling import TFGWPooling
from tfgw.nn.tw_pooling import TWPooling


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside the block PyTorch computes on one thread, as the last digits of its sums depend on how many there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def networks_on_one_thread(model: nn.Module) -> Iterator[None]:
    """Inside the block PyTorch computes on one thread, and the solver of each layer on as many as PyTorch had before.

    The networks' tensors have a few thousand rows. More threads save little on them and cost much on a busy machine,
    where PyTorch's threads wait for each other (measured: an epoch of MUTAG in 0.12 s on one thread and in 2.7 s on
    two, with three other programs on the same two cores).
    """
    threads = torch.get_num_threads()
    layers = [layer for layer in model.modules() if isinstance(layer, TFGWPooling | TWPooling)]
    unset = [layer for layer in layers if layer.num_threads is None]
    for layer in unset:
        layer.num_threads = threads
    try:
        with one_thread():
            yield
    finally:
        for layer in unset:
            layer.num_threads = None

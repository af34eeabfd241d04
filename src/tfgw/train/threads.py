"""Which threads do what: the solver gets them all, the networks one."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tfgw.nn import TFGWPooling, TWPooling
from tfgw.nn.threads import one_thread


@contextmanager
def networks_on_one_thread(model: nn.Module) -> Iterator[None]:
    """Inside the block PyTorch computes on one thread, and the layers that solve on as many as it had before.

    The networks' tensors have a few thousand rows: threads save them little, and cost much on a machine that is busy
    with something else, where PyTorch's threads wait for each other (measured: an epoch of MUTAG in 0.12 s on one
    thread and in 2.7 s on two, with three other programs on the same two cores).
    """
    threads = torch.get_num_threads()
    layers = [layer for layer in model.modules() if isinstance(layer, TFGWPooling | TWPooling)]
    undecided = [layer for layer in layers if layer.num_threads is None]
    for layer in undecided:
        layer.num_threads = threads
    try:
        with one_thread():
            yield
    finally:
        for layer in undecided:
            layer.num_threads = None

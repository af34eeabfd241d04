"""Layers in evaluation mode on the CPU, computed by native code (ot/cpp/layers.hpp).

A network maps a graph by some hundred operations of PyTorch. On a small graph, each takes longer than its arithmetic;
native code takes a tenth of their time. It needs no padding (:mod:`tfgw.nn.linear`), because it maps every row in the
same way. Its sums are in another order than those of matrix libraries, so the last digits differ from those of PyTorch,
which computes everything else: training, evaluation with gradients, other precisions and devices, modules with hooks.
"""

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from tfgw.nn.padding import current_padding
from tfgw.ot import _core  # the C++ extension
from tfgw.ot.tracing import is_eager

RowStep = tuple[Any, ...]
"""What native code knows of a module: ``(weight, bias)`` of a linear layer, ``(mean, variance, weight, bias, eps)`` of
a normalisation, and ``()`` of a ReLU."""

_OF_PYTORCH: dict[type[nn.Module], list[RowStep]] = {nn.ReLU: [()], nn.Dropout: []}


def runs_natively(module: nn.Module, x: Tensor) -> bool:
    """Whether native code may compute a module whose input is ``x``, in the current settings."""
    if module.training or torch.is_grad_enabled() or not x.is_cpu:
        return False
    return current_padding() is None and is_eager() and not torch.is_autocast_enabled("cpu")


def row_steps(modules: Iterable[nn.Module]) -> list[RowStep] | None:
    """Return the steps of modules that are called one after the other; ``None`` if native code cannot compute them."""
    steps: list[RowStep] = []
    for module in modules:
        if not is_unobserved(module):
            return None
        kind = type(module)
        # The method is not inherited, because a subclass may compute something else.
        found = module.row_steps() if "row_steps" in vars(kind) else _OF_PYTORCH.get(kind)  # type: ignore[operator]
        if found is None:
            return None
        steps += found
    return steps


def is_unobserved(module: nn.Module) -> bool:
    """Whether the module is in evaluation mode, and no hook sees what enters or leaves it."""
    return not (module.training or module._forward_pre_hooks or module._forward_hooks)


def mapped_rows(x: Tensor, steps: list[RowStep] | None) -> Tensor | None:
    """Return what the steps map the rows of ``x`` to; ``None`` if native code cannot compute it."""
    return None if steps is None else cast(Tensor | None, _core.map_rows(x.contiguous(), steps))


def encoded_nodes(x: Tensor, edge_index: Tensor, layers: list[tuple[float, list[RowStep]]]) -> Tensor | None:
    """Return the features and the results of GIN layers side by side; ``None`` if native code cannot compute them.

    A layer is the factor of the features of a node beside the sum over its neighbours, and the steps that map the
    result.
    """
    return cast(Tensor | None, _core.encode_nodes(x.contiguous(), edge_index.contiguous(), layers))

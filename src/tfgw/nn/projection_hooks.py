"""Automatic projection of template layers after optimiser steps.

The paper's method is projected gradient descent. Without projection, the solver would get templates outside their
constraint sets. Layers are therefore registered here when they are created, and a global PyTorch hook projects them
after each step of an optimiser that holds their parameters.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from torch.nn import Parameter
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle


class Projectable(Protocol):
    """A layer with parameters on constrained sets."""

    def project_(self) -> None:
        """Project every parameter onto its set."""

    def parameters(self) -> Iterable[Parameter]:
        """The parameters, as of any module."""


_layers: set[weakref.ref[Any]] = set()
_explicit: weakref.WeakKeyDictionary[Optimizer, "weakref.WeakSet[Any]"] = weakref.WeakKeyDictionary()
"""Layers with explicit projection, by optimiser: its own hook projects them, until the hook is removed."""


def register(layer: Projectable) -> None:
    """Project ``layer`` after each step of any optimiser that holds one of its parameters."""
    _layers.add(weakref.ref(layer, _layers.discard))


def project_explicitly(
    optimizer: Optimizer, layers: Iterable[Projectable], project: Callable[[], None]
) -> RemovableHandle:
    """Project ``layers`` by calling ``project`` in a removable hook of ``optimizer``."""
    _explicit.setdefault(optimizer, weakref.WeakSet()).update(layers)
    return optimizer.register_step_post_hook(lambda *_: project())


def _project_stepped(optimizer: Optimizer, *_: object) -> None:
    # Copy to a tuple, because other threads may create layers at the same time.
    alive = (reference() for reference in tuple(_layers))
    explicit = _explicit.get(optimizer, ())
    layers = [layer for layer in alive if layer is not None and layer not in explicit]
    if not layers:
        return
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for layer in layers:
        if any(id(parameter) in stepped for parameter in layer.parameters()):
            layer.project_()


register_optimizer_step_post_hook(_project_stepped)

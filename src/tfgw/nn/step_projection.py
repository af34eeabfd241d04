"""Projection of template layers after the steps of an optimiser, whether or not a training loop asks for it.

The paper's method is projected gradient descent. A loop that leaves the projection out would hand the solver templates
outside their sets, so layers are known here from their construction on, and one hook of PyTorch that follows the steps
of all optimisers projects those whose parameters the optimiser holds.
"""

import weakref
from collections.abc import Iterable
from typing import Any, Protocol

from torch.nn import Parameter
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle


class Projectable(Protocol):
    """A layer with parameters on constrained sets."""

    def project_(self) -> None:
        """Move every parameter into its set."""

    def parameters(self) -> Iterable[Parameter]:
        """The parameters, as of any module."""


_layers: set[weakref.ref[Any]] = set()
_explicit: weakref.WeakKeyDictionary[Optimizer, "weakref.WeakSet[Any]"] = weakref.WeakKeyDictionary()
"""By optimiser, layers for which a loop has asked: its own hook projects them, or nobody once that is removed."""


def register(layer: Projectable) -> None:
    """Project ``layer`` after each step of any optimiser that holds a parameter of it, from now on."""
    _layers.add(weakref.ref(layer, _layers.discard))


def project_explicitly(optimizer: Optimizer, layers: Iterable[Projectable]) -> RemovableHandle:
    """Project ``layers`` by a hook of ``optimizer`` itself, which can be removed."""
    layers = list(layers)
    _explicit.setdefault(optimizer, weakref.WeakSet()).update(layers)

    def project(*_: object) -> None:
        for layer in layers:
            layer.project_()

    return optimizer.register_step_post_hook(project)


def _project_stepped(optimizer: Optimizer, *_: object) -> None:
    # A tuple first, as other threads may make layers meanwhile.
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

"""Exact integrated gradients of a head: the mean gradient along a line, over the linear pieces between kinks."""

from typing import Any

import torch
from torch import Tensor, nn

INCOMPLETE = 1e-9
"""Relative error of the sum above which a head is not piecewise linear."""


def mean_gradients(head: nn.Module, start: Tensor, end: Tensor) -> Tensor:
    """Compute the mean gradient of all outputs along the line from ``start`` to ``end``, ``(outputs, channels)``.

    Args:
        head: Head in evaluation mode. It must be piecewise linear: layers that are linear in this mode, and
            ``torch.nn.ReLU`` modules.
        start: Start of the line, ``(channels,)``.
        end: End of the line, ``(channels,)``.
    """
    times = _kinks(head, start, end)
    lengths = times.diff()
    points = _on_line(start, end, (times[1:] + times[:-1]) / 2).requires_grad_()
    with torch.enable_grad():
        outputs = head(points)
        columns = [(lengths @ outputs[:, c]) for c in range(outputs.shape[1])]
        gradients = torch.stack([torch.autograd.grad(c, points, retain_graph=True)[0].sum(0) for c in columns])
    _check_completeness(head, start, end, gradients)
    return gradients


def _on_line(start: Tensor, end: Tensor, times: Tensor) -> Tensor:
    return start + times[:, None] * (end - start)


def _kinks(head: nn.Module, start: Tensor, end: Tensor) -> Tensor:
    """Return times from 0 to 1 between which no ReLU changes its sign."""
    times = start.new_tensor([0.0, 1.0])
    for relu in [module for module in head.modules() if isinstance(module, nn.ReLU)]:
        # The times contain the kinks of all earlier ReLUs, so the inputs of this one are linear in between.
        values = _inputs_of(relu, head, _on_line(start, end, times))
        before, after = values[:-1], values[1:]
        crosses = before.sign() * after.sign() < 0
        share = before[crosses] / (before[crosses] - after[crosses])
        interval = crosses.nonzero()[:, 0]
        times = torch.cat([times, times[interval] + share * times.diff()[interval]]).clamp(0, 1).unique()
    return times


@torch.no_grad()
def _inputs_of(module: nn.Module, head: nn.Module, points: Tensor) -> Tensor:
    seen: list[Tensor] = []

    def note(_: nn.Module, inputs: Any) -> None:
        seen.append(inputs[0][: len(points)])  # heads may pad the rows

    handle = module.register_forward_pre_hook(note)
    try:
        head(points)
    finally:
        handle.remove()
    return seen[0]


@torch.no_grad()
def _check_completeness(head: nn.Module, start: Tensor, end: Tensor, gradients: Tensor) -> None:
    outputs = head(torch.stack([start, end]))
    missing = (gradients @ (end - start) - (outputs[1] - outputs[0])).abs().max()
    scale = 1 + outputs.abs().max() + (gradients * (end - start)).abs().sum(1).max()
    if not bool(missing <= INCOMPLETE * scale):
        raise ValueError(
            "model: cannot be explained, because its head is not piecewise linear with torch.nn.ReLU modules"
        )

"""Learning rate schedules."""

from math import cos, pi
from typing import Literal

Schedule = Literal["constant", "one_cycle"]

WARM_UP = 0.1  # share of all steps


def lr_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Return the factor of the learning rates in step ``step`` (from 0) of ``steps``.

    ``"one_cycle"`` is the cosine variant of Smith, Topin: Super-Convergence. https://arxiv.org/abs/1708.07120
    """
    if schedule == "constant":
        return 1.0
    warm_up = max(1.0, WARM_UP * steps)
    if step + 1 <= warm_up:
        return (step + 1) / warm_up
    return (1 + cos(pi * (step + 1 - warm_up) / (steps - warm_up + 1))) / 2

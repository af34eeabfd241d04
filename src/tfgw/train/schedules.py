"""Learning rate schedules."""

from math import cos, pi
from typing import Literal

Schedule = Literal["constant", "one_cycle", "halved"]

WARM_UP = 0.1  # share of all steps
HALF_LIFE = 50  # epochs


def lr_factor(schedule: Schedule, step: int, steps: int, *, epoch: int = 1) -> float:
    """Return the factor of the learning rates in step ``step`` (from 0) of ``steps``, in epoch ``epoch`` (from 1).

    ``"one_cycle"`` is the cosine variant of Smith, Topin: Super-Convergence. https://arxiv.org/abs/1708.07120
    """
    if schedule == "constant":
        return 1.0
    if schedule == "halved":
        return 0.5 ** ((epoch - 1) // HALF_LIFE)
    warm_up = max(1.0, WARM_UP * steps)
    if step + 1 <= warm_up:
        return (step + 1) / warm_up
    return (1 + cos(pi * (step + 1 - warm_up) / (steps - warm_up + 1))) / 2


def depends_on_epochs(schedule: Schedule) -> bool:
    """Whether the rate in an epoch depends on the number of all epochs, so that a finished run cannot be extended."""
    return schedule == "one_cycle"

"""Constraint sets of parameters."""

from math import inf
from typing import NamedTuple

from torch import Tensor

UNIT_INTERVAL, NON_NEGATIVE = (0.0, 1.0), (0.0, inf)


class Constraint(NamedTuple):
    """The constraint set of a tensor.

    Attributes:
        tensor: The tensor.
        interval: Bounds of all entries. ``None``: each row (last dimension) is on the probability simplex.
    """

    tensor: Tensor
    interval: tuple[float, float] | None = None

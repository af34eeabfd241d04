"""The translation units of the kernels: files that are compiled separately and in parallel.

A new file of kernels needs an entry here.
"""

from typing import NamedTuple

from tfgw.ot.backends.cuda.kernel_limits import LARGEST_FOR_SMALL_GRAPHS, LARGEST_FOR_STARTS, SIZE_CLASSES


class Unit(NamedTuple):
    """One file of kernels."""

    name: str
    """Name of the file, ``ot/cuda/NAME.cu``."""
    kernels: tuple[str, ...]
    """Its entry points."""
    largest: int = SIZE_CLASSES[-1]
    """The largest size class that has this unit."""
    forward: bool = True
    """Whether the forward pass launches the kernels; otherwise, the backward pass does."""
    several: bool = False
    """Whether only solves from several starts launch the kernels."""


# Units that take longest to compile come first.
UNITS = (
    Unit("starts", ("tfgw_starts",), largest=LARGEST_FOR_STARTS, several=True),
    Unit("starts_small", ("tfgw_starts_small",), largest=LARGEST_FOR_SMALL_GRAPHS, several=True),
    Unit(
        "starts_begin",
        ("tfgw_starts_begin", "tfgw_starts_pin", "tfgw_starts_walk", "tfgw_starts_product", "tfgw_starts_spread"),
        largest=LARGEST_FOR_STARTS,
        several=True,
    ),
    Unit("solve", ("tfgw_solve",)),
    Unit("solve_small", ("tfgw_solve_small",), largest=LARGEST_FOR_SMALL_GRAPHS),
    Unit("start", ("tfgw_start",)),
    Unit("start_many", ("tfgw_start_many",), largest=LARGEST_FOR_SMALL_GRAPHS),
    Unit("prepare", ("tfgw_index", "tfgw_prepare")),
    Unit(
        "backward",
        ("tfgw_backward_nodes", "tfgw_backward_edges", "tfgw_backward_templates", "tfgw_fold"),
        forward=False,
    ),
)

LAYERS = Unit(
    "layers",
    tuple(
        f"tfgw_{kernel}_{precision}"
        for kernel in (
            *("norm", "norm_backward", "linear_gradient", "neighbour_sums", "padded_batch"),
            *("adam_steps", "adam_update", "projection"),
        )
        for precision in ("float64", "float32")
    ),
)
"""Padded batches, the layers of networks on them (:mod:`tfgw.nn.cuda`), the optimiser and the projection of
templates. The kernels do not depend on the size of templates, so this unit is compiled once, for the first size
class."""


def units_of(columns: int, *, several: bool | None = None) -> list[Unit]:
    """Return the units of a size class: those of several starts, the others, or all of them."""
    return [unit for unit in UNITS if columns <= unit.largest and several in (None, unit.several)]


def unit_of(kernel: str) -> Unit:
    """Return the unit that defines a kernel."""
    return next(unit for unit in UNITS if kernel in unit.kernels)

"""Common style of all plots: colour-blind friendly colours, and figures without a display."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the darker half first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FOR, AGAINST = "#0072B2", "#D55E00"
"""Colours of positive and negative contributions."""
INK = "#1b1d1f"
"""Colour of text and axes; pages with another background replace it."""

STYLE: dict[str, Any] = {
    "text.parse_math": False,  # class names are plain text, even with dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "tfgw",  # equal figures give equal files
    "font.family": "sans-serif",
    "legend.framealpha": 0.0,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Apply the style of the package to a plotting function, without changing the global style."""

    @wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> R:
        with _matplotlib().rc_context(STYLE):
            return draw(*args, **kwargs)

    return in_style


def new_figure(columns: int = 1, *, width: float = 4.0, height: float = 3.2, rows: int = 1) -> tuple["Figure", Any]:
    """Create a figure and its axes, ``(rows, columns)``, without a display."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def bare_figure(columns: int, *, width: float, height: float) -> tuple["Figure", Any]:
    """Create a figure for drawings of graphs, with titles but without axes; faster than :func:`new_figure`."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height))
    axes = figure.subplots(1, columns, squeeze=False, gridspec_kw={"wspace": 0.04})
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.84 if columns > 1 else 0.99)
    return figure, axes[0]


def class_colour(number: int) -> str:
    """Return the colour of a class."""
    return COLOURS[number % len(COLOURS)]


def class_marker(number: int) -> str:
    """Return the marker of a class; colour and marker together distinguish 49 classes."""
    return MARKERS[(number + number // len(MARKERS)) % len(MARKERS)]


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("matplotlib is not installed; pip install 'tfgw[report]'") from error
    return matplotlib

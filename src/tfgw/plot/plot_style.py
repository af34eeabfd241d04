"""What all plots share: colours that colour-blind readers can tell apart, figures without a display, one style."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the darker half first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FOR, AGAINST = "#0072B2", "#D55E00"
"""What speaks for a class, and what speaks against it."""
INK = "#1b1d1f"
"""Of text and axes; a page with another background replaces it."""

STYLE: dict[str, Any] = {
    "text.parse_math": False,  # names of classes are text, even if they have dollar signs
    "svg.fonttype": "none",
    "svg.hashsalt": "tfgw",  # equal figures have equal files
    "font.family": "sans-serif",
    "legend.framealpha": 0.0,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function in the style of the package; other figures of the program keep theirs."""

    @wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> R:
        with _matplotlib().rc_context(STYLE):
            return draw(*args, **kwargs)

    return in_style


def new_figure(columns: int = 1, *, width: float = 4.0, height: float = 3.2, rows: int = 1) -> tuple["Figure", Any]:
    """A figure and its axes, ``(rows, columns)``, drawn without a display."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def bare_figure(columns: int, *, width: float, height: float) -> tuple["Figure", Any]:
    """A figure for drawings of graphs side by side, with room for titles alone; it takes a fraction of the time."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height))
    axes = figure.subplots(1, columns, squeeze=False, gridspec_kw={"wspace": 0.04})
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.84 if columns > 1 else 0.99)
    return figure, axes[0]


def class_colour(number: int) -> str:
    """The colour of a class."""
    return COLOURS[number % len(COLOURS)]


def class_marker(number: int) -> str:
    """The marker of a class; with the colour, it tells 49 classes apart."""
    return MARKERS[(number + number // len(MARKERS)) % len(MARKERS)]


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("matplotlib is not installed; pip install 'tfgw[report]'") from error
    return matplotlib

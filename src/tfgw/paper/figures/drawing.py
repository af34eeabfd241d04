"""What all figures share: colours that colour-blind readers can tell apart, sizes, saving."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfgw.datasets.paths import written_whole
from tfgw.paper.experiment import Experiment
from tfgw.paper.records import Record
from tfgw.paper.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, the darker half first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = (".png", ".svg", ".pdf")


def new_figure(columns: int = 1, *, width: float = 4.0, height: float = 3.2, rows: int = 1) -> tuple["Figure", Any]:
    """A figure and its axes, ``(rows, columns)``, drawn without a display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError("plot: matplotlib is not installed; pip install 'tfgw[figures]'") from error
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; the ending of the file says how."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--output {path}: must end in {', '.join(FORMATS)}")
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=150)


def require(found: Any, experiment: Experiment, series: Series) -> None:
    """A figure without its records is an error that says how to get them."""
    if not len(found):
        raise ValueError(
            f"no records of {series.row.model} on {series.dataset} yet: tfgw paper run {experiment.name}"
            f" --dataset {series.dataset} --model {series.row.model}"
        )


def percent(done: list[Record]) -> list[float]:
    """Test accuracies."""
    return [100 * record["result"]["test_accuracy"] for record in done]

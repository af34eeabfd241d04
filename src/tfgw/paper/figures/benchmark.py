"""Test accuracy of rows of the benchmark on every dataset, with confidence intervals, and the paper's result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.paper.experiment import Experiment, Row
from tfgw.paper.figures.drawing import require
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary, summarise
from tfgw.plot.plot_style import COLOURS, INK, MARKERS, new_figure

STEP = 0.14  # between the rows of a dataset; datasets are at distance 1
NAMES = {"PTC_MR": "PTC", "PROTEINS_full": "PROTEINS", "IMDB-BINARY": "IMDB-B", "IMDB-MULTI": "IMDB-M"}


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Plot the rows of a dataset side by side, after the paper's result of the first row.

    Rows without a finished test fold on a dataset are left out.
    """
    summaries = [(one, summarise(one, records)) for one in series]
    known = [(one, summary) for one, summary in summaries if summary.test is not None]
    require(known, experiment, series[0])
    datasets = list(dict.fromkeys(one.dataset for one in series))
    rows = list(dict.fromkeys(one.row.model for one in series))
    figure, axes = new_figure(width=10.0, height=4.2)
    axis = axes[0, 0]
    _paper(axis, series[0].row, datasets, offset=-STEP * len(rows) / 2)
    for number, model in enumerate(rows):
        found = [(one, summary) for one, summary in known if one.row.model == model]
        places = [datasets.index(one.dataset) + STEP * (number + 1 - len(rows) / 2) for one, _ in found]
        if found:
            _intervals(axis, places, [summary for _, summary in found], number, found[0][0].row.title)
    axis.set_xticks(range(len(datasets)), [NAMES.get(name, name) for name in datasets])
    axis.set_xlim(-0.5, len(datasets) - 0.5)
    axis.tick_params(axis="x", length=0)
    axis.set(ylabel="test accuracy, %")
    axis.grid(axis="y", color=INK, alpha=0.12, lw=0.7)
    axis.set_axisbelow(True)
    for boundary in range(1, len(datasets)):
        axis.axvline(boundary - 0.5, color=INK, alpha=0.12, lw=0.7)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _paper(axis: Any, row: Row, datasets: list[str], *, offset: float) -> None:
    """Plot the paper's means. Its ± is a standard deviation over folds, not a confidence interval, and is left out."""
    quoted = {name: row.paper[name][0] for name in datasets if name in row.paper}
    if quoted:
        places = [datasets.index(name) + offset for name in quoted]
        style = {"marker": "D", "facecolors": "none", "edgecolors": INK, "s": 32, "linewidths": 1.3}
        axis.scatter(places, list(quoted.values()), label=f"the paper's {row.title}", **style)


def _intervals(axis: Any, places: list[float], summaries: Sequence[Summary], number: int, title: str) -> None:
    colour = COLOURS[number % len(COLOURS)]
    for place, summary in zip(places, summaries, strict=True):
        if summary.interval is not None:
            axis.plot([place, place], [100 * end for end in summary.interval], color=colour, lw=1.6)
    means = [100 * summary.test for summary in summaries if summary.test is not None]
    style = {"marker": MARKERS[number % len(MARKERS)], "color": colour, "s": 32, "linewidths": 0, "zorder": 3}
    axis.scatter(places, means, label=title, **style)

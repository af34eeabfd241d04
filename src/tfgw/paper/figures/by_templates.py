"""Test accuracy by number of templates, with the range over runs: the figures on 4-CYCLES and SKIP-CIRCLES."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import require
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.paper.summary import by_configuration
from tfgw.plot.plot_style import COLOURS, MARKERS, new_figure


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Plot the mean of each row as a line, and the range from the worst to the best run as a band."""
    figure, axes = new_figure(width=5.0)
    axis = axes[0, 0]
    ticks: set[int] = set()
    for number, one in enumerate(series):
        found = {
            c["num_templates"]: [r["result"]["test_accuracy"] for r in done]
            for c, done in by_configuration(one, records)
        }
        counts = sorted(count for count, values in found.items() if values)
        require(counts, experiment, one)
        values = [np.array(found[count]) for count in counts]
        runs = sorted({len(value) for value in values})
        label = f"{one.row.title} ({'–'.join(map(str, {runs[0]: 0, runs[-1]: 0}))} runs)"
        colour = COLOURS[number]
        axis.plot(counts, [v.mean() for v in values], color=colour, marker=MARKERS[number], label=label)
        axis.fill_between(counts, [v.min() for v in values], [v.max() for v in values], color=colour, alpha=0.2, lw=0)
        ticks.update(counts)
    axis.set_xticks(sorted(ticks))
    axis.set(xlabel="number of templates K", ylabel="test accuracy", title=series[0].dataset)
    axis.set_ylim(top=1.02)
    axis.legend(title="mean, worst to best")
    return figure

"""Distributions of the learned α."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import require
from tfgw.paper.records import Records, is_done
from tfgw.paper.series import Series, finished
from tfgw.plot.plot_style import COLOURS, new_figure


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """One panel per dataset, one histogram per structure."""
    datasets = list(dict.fromkeys(one.dataset for one in series))
    figure, axes = new_figure(len(datasets), width=4.8)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        here = [one for one in series if one.dataset == dataset]
        alphas = [[r["result"]["alpha"] for r in finished(one, records) if is_done(r)] for one in here]
        for one, values in zip(here, alphas, strict=True):
            require(values, experiment, one)
        bins = np.linspace(min(map(min, alphas)), max(map(max, alphas)) + 1e-9, 16)
        for number, (one, values) in enumerate(zip(here, alphas, strict=True)):
            style = {"color": COLOURS[number], "label": f"{one.row.title} ({len(values)} models)"}
            axis.hist(values, bins=bins, histtype="stepfilled", alpha=0.35, **style)
            axis.hist(
                values, bins=bins, histtype="step", color=COLOURS[number], linestyle=("-", "--")[number % 2], lw=1.5
            )
        axis.set(xlabel="learned α (0: features, 1: structure)", ylabel="models", title=dataset)
        axis.set_ylim(top=1.35 * axis.get_ylim()[1])  # room for the legend
        axis.legend(loc="upper center", ncols=2)
    return figure

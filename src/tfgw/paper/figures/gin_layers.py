"""Test accuracy of GIN by number of layers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import percent, require
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.paper.summary import by_configuration
from tfgw.plot.plot_style import COLOURS, new_figure


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """One box per number of layers, over the test folds."""
    figure, axes = new_figure(width=5.0)
    axis = axes[0, 0]
    found = [(c["num_layers"], percent(done)) for c, done in by_configuration(series[0], records) if done]
    require(found, experiment, series[0])
    boxes = axis.boxplot(
        [values for _, values in found],
        positions=[layers for layers, _ in found],
        widths=0.6,
        patch_artist=True,
        showmeans=True,
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 5},
        medianprops={"color": "black"},
    )
    for box in boxes["boxes"]:
        box.set(facecolor=COLOURS[0], alpha=0.6)
    axis.set(xlabel="GIN layers L", ylabel="test accuracy, %")
    axis.set_title(f"GIN on {series[0].dataset}: boxes over test folds, diamonds are means", fontsize="medium")
    return figure

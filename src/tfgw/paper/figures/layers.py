"""Test accuracy by number of GIN layers L and templates K."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import percent, require
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.paper.summary import by_configuration
from tfgw.plot.plot_style import COLOURS, new_figure

HATCHES = ("", "//", "..", "xx")


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Boxes of the accuracies on the test folds, those of one L side by side; a diamond is the mean."""
    figure, axes = new_figure(width=8.0, height=3.6)
    axis = axes[0, 0]
    handles: dict[str, Any] = {}
    for group, one in enumerate(series):
        found = [(c["num_templates"], percent(done)) for c, done in by_configuration(one, records) if done]
        require(found, experiment, one)
        for number, (templates, values) in enumerate(found):
            boxes = axis.boxplot(
                [values],
                positions=[group + 0.19 * (number - (len(found) - 1) / 2)],
                widths=0.15,
                patch_artist=True,
                showmeans=True,
                meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4},
                medianprops={"color": "black"},
                flierprops={"markersize": 3},
            )
            boxes["boxes"][0].set(facecolor=COLOURS[number], alpha=0.7, hatch=HATCHES[number % len(HATCHES)])
            handles[f"K = {templates}"] = boxes["boxes"][0]
    axis.set_xticks(range(len(series)), [one.row.title for one in series])
    axis.set(ylabel="test accuracy, %", title=f"{series[0].dataset}: boxes over test folds, diamonds are means")
    axis.legend(handles.values(), handles.keys(), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure

"""Distributions of the distances to each template, by class."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.plot.plot_style import COLOURS, new_figure


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Plot half a violin per template and class, for two classes."""
    models = embedded_models(experiment, series, records)
    figure, axes = new_figure(len(models), width=4.4)
    for axis, model in zip(axes[0], models, strict=True):
        templates = range(model.distances.shape[1])
        for label, side in zip(sorted(set(model.labels)), ("low", "high"), strict=False):
            chosen = model.distances[model.labels == label]
            parts = axis.violinplot(
                [chosen[:, k] for k in templates],
                positions=templates,
                widths=0.9,
                side=side,
                showmedians=True,
                showextrema=False,
            )
            for body in parts["bodies"]:
                body.set(facecolor=COLOURS[label], edgecolor="black", alpha=0.7, hatch=("", "///")[label % 2], lw=0.5)
            parts["cmedians"].set(color="black", lw=1.2)
            axis.fill_between(
                [], [], color=COLOURS[label], hatch=("", "///")[label % 2], alpha=0.7, label=f"class {label}"
            )
        axis.set_xticks(templates, [str(k + 1) for k in templates])
        axis.set(xlabel="template", ylabel="distance", title=model.title)
        axis.set_ylim(bottom=0)
        axis.legend()
    return figure

"""PCA of the embedding: graphs by class, templates by the class that the model predicts for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.plot.embedding_plot import PlaneMap, draw_map, plane_map
from tfgw.plot.plot_style import class_colour, new_figure, styled


@styled
def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """One panel per model; test graphs have a dark outline."""
    models = embedded_models(experiment, series, records)
    figure, axes = new_figure(len(models), height=3.8)
    for axis, model in zip(axes[0], models, strict=True):
        plane = plane_map(model.distances, others=model.template_distances)
        graphs, templates = plane.points[: len(model.labels)], plane.points[len(model.labels) :]
        order = [f"class {label}" for label in sorted(set(model.labels))]
        names = [f"class {label}" for label in model.labels]
        draw_map(axis, PlaneMap(graphs, plane.axes), names, order=order, is_test=model.is_test)
        axis.get_legend().remove()
        for label in sorted(set(model.template_classes)):
            stars = templates[model.template_classes == label]
            axis.scatter(*stars.T, s=190, c=class_colour(int(label)), marker="*", edgecolors="black", zorder=3)
        axis.set_title(f"{model.title}: test accuracy {model.result['test_accuracy']:.2f}", fontsize="medium")
    handles, names = axes[0][-1].get_legend_handles_labels()
    figure.legend(
        [*handles, _star()], [*names, "template (colour: predicted class)"], loc="outside lower center", ncols=4
    )
    return figure


def _star() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color="lightgrey", marker="*", markeredgecolor="black", linestyle="none", markersize=13)

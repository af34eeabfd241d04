"""PCA of the embedding: graphs by class, templates by the class that the model predicts for them."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from sklearn.decomposition import PCA

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import COLOURS, MARKERS, new_figure
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.records import Records
from tfgw.paper.series import Series


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """One panel per model; graphs it was not trained on have a dark rim."""
    models = embedded_models(experiment, series, records)
    figure, axes = new_figure(len(models), height=3.8)
    for axis, model in zip(axes[0], models, strict=True):
        pca = PCA(2).fit(model.distances)
        points, templates = pca.transform(model.distances), pca.transform(model.template_distances)
        for label, is_test in product(sorted(set(model.labels)), (False, True)):
            chosen = points[(model.labels == label) & (model.is_test == is_test)]
            rim = "black" if is_test else "none"
            style = {
                "color": COLOURS[label],
                "marker": MARKERS[label],
                "edgecolors": rim,
                "alpha": 0.9 if is_test else 0.5,
            }
            axis.scatter(*chosen.T, s=18, lw=0.9, **style)
        for label in sorted(set(model.template_classes)):
            stars = templates[model.template_classes == label]
            axis.scatter(*stars.T, s=190, c=COLOURS[label], marker="*", edgecolors="black", zorder=3)
        shares = 100 * pca.explained_variance_ratio_
        axis.set(xlabel=f"first component ({shares[0]:.0f} %)", ylabel=f"second component ({shares[1]:.0f} %)")
        axis.set_title(f"{model.title}: test accuracy {model.result['test_accuracy']:.2f}", fontsize="medium")
    figure.legend(handles=_legend(models), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _legend(models: Any) -> list[Any]:
    from matplotlib.lines import Line2D

    labels = sorted({int(label) for model in models for label in model.labels})
    style: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    classes = [
        Line2D([], [], color=COLOURS[label], marker=MARKERS[label], label=f"class {label}", **style) for label in labels
    ]
    star = Line2D(
        [], [], color="lightgrey", marker="*", markeredgecolor="black", label="template (colour: predicted class)"
    )
    rim = Line2D([], [], color="lightgrey", marker="o", markeredgecolor="black", label="test graph", **style)
    star.set(linestyle="none", markersize=13)
    return [*classes, rim, star]

"""One-dimensional linear discriminant analysis of the embedding."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.plot.plot_style import COLOURS, new_figure


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Histograms of the projections of all graphs, by class; LDA is fitted without the test graphs."""
    models = embedded_models(experiment, series, records)
    figure, axes = new_figure(len(models))
    for axis, model in zip(axes[0], models, strict=True):
        known = ~model.is_test
        lda = LinearDiscriminantAnalysis(n_components=1).fit(model.distances[known], model.labels[known])
        values = lda.transform(model.distances)[:, 0]
        low, high = np.percentile(values, [0.5, 99.5])
        bins = np.linspace(low, high, 30)
        for label in sorted(set(model.labels)):
            chosen = values[model.labels == label]
            style = {"bins": bins, "density": True, "color": COLOURS[label]}
            axis.hist(chosen, histtype="stepfilled", alpha=0.35, label=f"class {label}", **style)
            axis.hist(chosen, histtype="step", linestyle=("-", "--")[label % 2], lw=1.5, **style)
        tests = lda.score(model.distances[model.is_test], model.labels[model.is_test])
        axis.set(xlabel="projection", ylabel="density")
        axis.set_title(f"{model.title}: LDA test accuracy {100 * tests:.0f} %", fontsize="medium")
        axis.legend()
    return figure

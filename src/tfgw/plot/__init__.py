"""Plotting functions that return matplotlib figures (extra ``report``).

>>> tfgw.plot.templates(model, graphs=train).savefig("templates.png")
>>> tfgw.plot.matching(model, graph)                       # which node matches which template node
>>> tfgw.plot.embedding(model, graphs, labels)
>>> tfgw.plot.curves(estimator)
>>> tfgw.plot.confusion(y, estimator.predict(graphs))

Reports and the paper's figures use them.
"""

from tfgw.plot.curve_plot import curves
from tfgw.plot.embedding_plot import embedding
from tfgw.plot.evaluation_plot import (
    calibration,
    confusion,
    distances_by_class,
    precision_recall,
    predicted_values,
    roc,
)
from tfgw.plot.matching_plot import matching
from tfgw.plot.template_plot import templates

__all__ = [
    "calibration",
    "confusion",
    "curves",
    "distances_by_class",
    "embedding",
    "matching",
    "precision_recall",
    "predicted_values",
    "roc",
    "templates",
]

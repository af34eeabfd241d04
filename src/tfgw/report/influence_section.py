"""The training graphs that influence a kernel machine most, in the place of templates."""

import numpy as np

from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.plot_style import bare_figure, styled
from tfgw.report.page import Plot, Section, Table, Text
from tfgw.report.report_data import Drawings, ReportData
from tfgw.report.training_graphs import TrainingGraphs

SHOWN = 3
"""Number of training graphs per class."""
MOST_CLASSES = 8


def influence_section(data: ReportData, drawings: Drawings) -> Section:
    """One row of drawings per class."""
    graphs = TrainingGraphs(data, drawings)
    groups = _groups(data, graphs)
    text = (
        f"The model compares a graph with all {graphs.model.num_graphs} training graphs. The influence of a training"
        f" graph is its mean absolute contribution to a score, over {graphs.view.influenced} graphs. Training graphs"
        " that the others predict badly get large coefficients, so difficult cases have a large influence. Node colour:"
        f" {drawings.looks.legend}."
    )
    if len(groups) > MOST_CLASSES:
        text += f" The first {MOST_CLASSES} of {len(groups)} classes are shown."
    shown = list(groups.items())[:MOST_CLASSES]
    plots = [_plot(graphs, place, name, *group) for place, (name, group) in enumerate(shown)]
    return Section("influence", "Influential training graphs", [Text(text), *plots])


def _groups(data: ReportData, graphs: TrainingGraphs) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the training graphs of each class, and their influence on its score; all graphs without classes."""
    influence, everyone = graphs.view.influence, np.arange(graphs.model.num_graphs)
    classes = [graphs.group(number) for number in everyone.tolist()]
    if data.trained.task != "classification" or None in classes:
        return {"": (everyone, influence.mean(0))}
    names = np.array(classes)
    found = {}
    for output, name in enumerate(data.class_names):
        (own,) = np.nonzero(names == name)
        if len(own):
            found[name] = (own, influence[output, own])
    return found


@styled
def _plot(graphs: TrainingGraphs, place: int, name: str, own: np.ndarray, influence: np.ndarray) -> Plot:
    order = np.argsort(-influence, kind="stable")
    chosen = own[order[:SHOWN]].tolist()
    figure, axes = bare_figure(len(chosen), width=1.75, height=1.95)
    for axis, number, value in zip(np.atleast_1d(axes), chosen, influence[order], strict=False):
        draw_graph(axis, graphs.drawing(number))
        axis.set_title(f"graph {graphs.name(number)}\ninfluence {value:.3g}", fontsize="small")
    rows = [
        [graphs.name(int(own[i])), graphs.group(int(own[i])), graphs.left_out(int(own[i])), float(influence[i])]
        for i in order
    ]
    kind = f"training graphs of class {name}" if name else "training graphs"
    listed = ", ".join(graphs.name(number) for number in chosen)
    return Plot(
        f"influence-{place}",
        figure,
        f"The {len(chosen)} most influential {kind}: {listed}.",
        f"The most influential {kind}.",
        Table(["graph", "class", "leave-one-out prediction", "influence"], rows),
    )

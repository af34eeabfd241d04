"""Explanations of the predictions of a kernel machine for a few graphs."""

import math
from typing import TYPE_CHECKING

import numpy as np
from torch_geometric.explain import Explanation

from tfgw.explanations import explain
from tfgw.plot.drawing_data import DrawnGraph, named_nodes
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.matching_plot import draw_matching
from tfgw.plot.plot_style import COLOURS, INK, bare_figure, new_figure, styled
from tfgw.report.explanation_section import draw_nodes, part_title, section_name
from tfgw.report.page import Plot, Section, Table, Text
from tfgw.report.report_data import Drawings, ReportData
from tfgw.report.training_graphs import TrainingGraphs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LISTED = 10
"""Number of training graphs whose contributions are shown separately."""
NEAREST = 2


def kernel_explanation_section(data: ReportData, chosen: dict[int, str], drawings: Drawings) -> Section:
    """One part per graph."""
    text = (
        "A score is an exact sum: the score of the reference, and the contributions of all training graphs, each"
        " divided into structure and features (degrees, cycles and clustering count as features), and among nodes"
        " and edges. The reference is the mean distance of the training graphs to each of them. A training graph of"
        " the class supports it if the graph is nearer than usual. Blue supports the class, orange opposes it. The"
        " features of a node describe its neighbourhood, so the share of a node may be caused by its neighbours. The"
        " score of a class is its output minus the mean of the others; for two classes, it is the log-odds."
    )
    graphs = TrainingGraphs(data, drawings)
    if any(data.part[number] == graphs.view.training_part for number in chosen):
        text += (
            " For a training graph, the title shows the leave-one-out prediction, but the prediction that is explained"
            " is that of the machine, which was trained on this graph."
        )
    parts = [_part(data, number, why, drawings[number], graphs) for number, why in chosen.items()]
    return Section("explanations", "Explanations", [Text(text)], parts)


def _part(data: ReportData, number: int, why: str, drawing: DrawnGraph, graphs: TrainingGraphs) -> Section:
    opened = data.model._replace(preprocessing=None, classes=(), takes_any_graph=False)
    found = explain(opened, data.graph(number), top=LISTED)
    name, prefix = data.names[number], section_name(number)
    target = data.class_names[found.target]
    nodes = f"Contributions of nodes and edges to the score of {target}."
    bars = "Training graphs that contribute most, by structure and features; last, the sum of all others."
    near = _nearest(found, graphs)
    beside = f"The graph and its nearest training graphs: {', '.join(graphs.title(i) for i in near)}."
    most, kind = int(found.training_graphs[0]), int(found.kinds[0].abs().argmax())
    plan = (
        f"Matching with training graph {graphs.title(most)}, which contributes most ({float(found.templates[0]):+.3g}),"
        f" for {graphs.model.config.distances[kind]}."
    )
    blocks: list[Table | Plot | Text] = [
        Plot(f"{prefix}-nodes", draw_nodes(drawing, found), f"Graph {name}. {nodes}", nodes, _nodes(drawing, found)),
        Plot(
            f"{prefix}-near",
            _draw_nearest(drawing, near, found, graphs),
            f"Graph {name}. {beside}",
            beside,
            _distances(near, found, graphs),
        ),
        Plot(f"{prefix}-bars", _draw_bars(found, graphs), f"Graph {name}. {bars}", bars, _contributions(found, graphs)),
        Plot(f"{prefix}-plan", _draw_plan(drawing, found, kind, graphs.drawing(most)), f"Graph {name}. {plan}", plan),
        _sums(found, target),
    ]
    return Section(prefix, part_title(data, number, why), blocks)


def _relative(found: Explanation, graphs: TrainingGraphs) -> np.ndarray:
    """Return the distances to all training graphs relative to their mean distance, a weighted mean, ``(N,)``."""
    mean = graphs.model.mean_distances.T
    # If all training graphs equal this one in some kind of distance, that kind does not show which are near.
    relative = found.training_distances / mean.masked_fill(mean == 0, math.inf)
    return np.asarray((relative @ graphs.model.distance_weights).numpy())


def _nearest(found: Explanation, graphs: TrainingGraphs) -> list[int]:
    order: list[int] = np.argsort(_relative(found, graphs), kind="stable")[:NEAREST].tolist()
    return order


@styled
def _draw_nearest(drawing: DrawnGraph, near: list[int], found: Explanation, graphs: TrainingGraphs) -> "Figure":
    figure, axes = bare_figure(1 + len(near), width=1.75, height=1.95)
    draw_graph(axes[0], drawing)
    axes[0].set_title("the graph", fontsize="small")
    relative = _relative(found, graphs)
    for axis, number in zip(axes[1:], near, strict=True):
        draw_graph(axis, graphs.drawing(number))
        axis.set_title(f"{graphs.title(number)}\n{100 * relative[number]:.0f} % of its mean distance", fontsize="small")
    return figure


def _distances(near: list[int], found: Explanation, graphs: TrainingGraphs) -> Table:
    kinds = map(str, graphs.model.config.distances)
    relative = _relative(found, graphs)
    rows = [
        [
            graphs.name(number),
            graphs.group(number),
            float(relative[number]),
            float(found.training_contributions[number]),
            *map(float, found.training_distances[number]),
        ]
        for number in near
    ]
    return Table(["graph", "class", "relative distance", "contribution", *kinds], rows)


@styled
def _draw_bars(found: Explanation, graphs: TrainingGraphs) -> "Figure":
    names = [graphs.name(number) for number in found.training_graphs.tolist()]
    figure, axes = new_figure(width=max(3.4, 0.36 * len(names) + 1.6), height=2.9)
    axis, places = axes[0, 0], np.arange(len(names))
    axis.bar(places - 0.2, found.template_structure.numpy(), 0.38, color=COLOURS[2], label="structure")
    axis.bar(places + 0.2, found.template_features.numpy(), 0.38, color=COLOURS[4], hatch="//", label="features")
    if len(found.training_contributions) > len(names):
        axis.bar([len(names)], [float(found.rest)], 0.6, color=COLOURS[3], hatch="..", label="all others")
        names.append("others")
    axis.axhline(0, color=INK, lw=0.7)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set(xlabel="training graph", ylabel="contribution")
    axis.legend(fontsize="small")
    return figure


@styled
def _draw_plan(drawing: DrawnGraph, found: Explanation, kind: int, other: DrawnGraph) -> "Figure":
    figure, axes = bare_figure(1, width=5.2, height=2.6)
    draw_matching(axes[0], drawing, other, found.plans[0, kind, :, : len(other.names)].numpy())
    return figure


def _nodes(drawing: DrawnGraph, found: Explanation) -> Table:
    structure = found.node_structure.sum(0) + found.node_rest_structure
    features = found.node_features.sum(0) + found.node_rest_features
    columns = zip(named_nodes(drawing.names), structure, features, found.node_mask[:, 0], strict=True)
    rows = [[name, *map(float, values)] for name, *values in columns]
    rows.append(["all", *(float(values.sum()) for values in (structure, features, found.node_mask))])
    return Table(["node", "structure", "features", "total"], rows)


def _contributions(found: Explanation, graphs: TrainingGraphs) -> Table:
    columns = zip(
        found.training_graphs.tolist(),
        found.template_structure,
        found.template_features,
        found.templates,
        strict=True,
    )
    rows: list[list[object]] = [[graphs.name(i), graphs.group(i), *map(float, values)] for i, *values in columns]
    others = len(found.training_contributions) - len(found.templates)
    rest = (found.node_rest_structure.sum(), found.node_rest_features.sum(), found.rest)
    rows.append([f"{others} others", None, *map(float, rest)])
    return Table(["training graph", "class", "structure", "features", "contribution"], rows)


def _sums(found: Explanation, target: str) -> Table:
    structure = found.template_structure.sum() + found.node_rest_structure.sum()
    features = found.template_features.sum() + found.node_rest_features.sum()
    steps = [
        ["score of the reference", found.reference_score],
        ["structure of all training graphs", structure],
        ["features of all training graphs", features],
        [f"score of {target}", found.score],
        ["residual of the sum", found.reference_score + structure + features - found.score],
    ]
    return Table(["", "value"], [[name, float(value)] for name, value in steps], "Sum of the contributions")

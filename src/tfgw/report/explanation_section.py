"""Explanations of the predictions for a few graphs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.explain import Explanation

from tfgw.explanations import Reference, explain
from tfgw.plot.drawing_data import DrawnGraph, NodeLooks, named_nodes
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.matching_plot import draw_matching
from tfgw.plot.plot_style import COLOURS, INK, bare_figure, new_figure, styled
from tfgw.plot.template_plot import live_nodes, template_drawing
from tfgw.report.page import Plot, Section, Table, Text
from tfgw.report.report_data import TRAINING, Drawings, ReportData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 16
REFERENCE_GRAPHS = 256


def chosen_graphs(data: ReportData, asked: Sequence[str]) -> dict[int, str]:
    """Select the graphs to explain, each with a reason: the requested ones, else representative ones."""
    if asked:
        names = {name: number for number, name in reversed(list(enumerate(data.names)))}
        missing = [name for name in asked if name not in names]
        if missing:
            raise ValueError(f"--graph {missing[0]}: no such graph; the graphs of the report are named"
                             f" {data.names[0]}, {data.names[-1]}, …")  # fmt: skip
        return {names[name]: "requested" for name in asked}
    numbers = np.flatnonzero(data.measured)
    if data.trained.task == "regression":
        if data.y is None:
            return {int(numbers[0]): "the first graph"}
        errors = np.abs(data.y - data.predicted_values).sum(1)[numbers]
        return _distinct(
            [(int(numbers[errors.argmin()]), "best predicted"), (int(numbers[errors.argmax()]), "worst predicted")]
        )
    certainty = np.abs(data.probabilities - 0.5).min(1) if data.trained.task == "multilabel" else _margin(data)
    certainty, right = certainty[numbers], data.right
    hit = np.ones(len(numbers), dtype=bool) if right is None else right[numbers]
    found = []
    if hit.any():
        found.append((int(numbers[hit][certainty[hit].argmax()]), "most certain correct prediction"))
    found.append((int(numbers[certainty.argmin()]), "most uncertain"))
    wrong = numbers[~hit][np.argsort(-certainty[~hit], kind="stable")]
    found += [
        (int(number), "most certain wrong prediction" if not place else "wrong prediction")
        for place, number in enumerate(wrong[:3])
    ]
    return _distinct(found)


def section_name(number: int) -> str:
    """Return the anchor of the explanation of a graph."""
    return f"graph-{number}"


def explanation_section(data: ReportData, chosen: dict[int, str], drawings: Drawings) -> Section:
    """One part per graph."""
    text = (
        "A score is an exact sum: the score of the reference, the contributions of the templates (structure and"
        " features), and the contribution of the sum over nodes. The contributions of the nodes have the same total."
        " The reference is the mean training graph. Blue supports the class, orange opposes it. The score of a class"
        " is its output minus the mean of the others; for two classes, it is the log-odds."
    )
    references = _references(data)
    parts = [_part(data, number, why, drawings, references) for number, why in chosen.items()]
    return Section("explanations", "Explanations", [Text(text)], parts)


def _references(data: ReportData) -> list[Reference] | None:
    """Return the mean training graph for each network, computed from the first graphs if there are many."""
    if TRAINING not in data.prepared:
        return None
    graphs = data.prepared[TRAINING][:REFERENCE_GRAPHS]
    return [Reference.of_graphs(member, graphs) for member in data.model.members]


def _part(data: ReportData, number: int, why: str, drawings: Drawings, references: list[Reference] | None) -> Section:
    graph, opened = (
        data.graph(number),
        data.model._replace(preprocessing=None, classes=(), takes_any_graph=False),
    )
    found = explain(opened, graph, reference=references)
    name = data.names[number]
    drawing, prefix = drawings[number], section_name(number)
    target = data.class_names[found.target]
    most = int(found.templates.abs().argmax())
    nodes = f"Contributions of nodes and edges to the score of {target}."
    has_sum = bool(found.node_readout.abs().sum())
    bars = f"Contributions of templates, by structure and features{'; last, the sum over nodes' if has_sum else ''}."
    plan = f"Matching with template {most + 1}, which contributes most ({float(found.templates[most]):+.3g})."
    drawn = _draw_plan(data, drawing, found, most, drawings.looks)
    blocks: list[Table | Plot | Text] = [
        Plot(
            f"{prefix}-nodes", draw_nodes(drawing, found), f"Graph {name}. {nodes}", nodes, _node_table(drawing, found)
        ),
        Plot(f"{prefix}-bars", _draw_bars(found), f"Graph {name}. {bars}", bars, _template_table(found)),
        Plot(f"{prefix}-plan", drawn, f"Graph {name}. {plan}", plan),
        _sums(found, target),
    ]
    return Section(prefix, part_title(data, number, why), blocks)


def part_title(data: ReportData, number: int, why: str) -> str:
    """Return the title of the explanation of a graph."""
    truth = data.truth(number)
    known = "" if truth is None else f", true: {truth}"
    return f"Graph {data.names[number]}: {data.values(number)}{known} – {why}"


@styled
def draw_nodes(drawing: DrawnGraph, found: Explanation) -> "Figure":
    """Draw the contributions of nodes and edges."""
    figure, axes = bare_figure(1, width=3.6, height=3.2)
    links = {(int(a), int(b)): float(value) for (a, b), value in zip(found.edge_index.T, found.edge_mask, strict=True)}
    values = np.array([links.get((a, b), 0) + links.get((b, a), 0) for a, b in drawing.links.T.tolist()])
    draw_graph(axes[0], drawing, node_values=found.node_mask[:, 0].numpy(), link_values=values)
    return figure


@styled
def _draw_bars(found: Explanation) -> "Figure":
    shown = found.templates.abs().argsort(descending=True)[:MOST_BARS].sort().values
    structure, features = found.template_structure[shown].numpy(), found.template_features[shown].numpy()
    names = [str(int(k) + 1) for k in shown]
    figure, axes = new_figure(width=max(3.4, 0.34 * len(names) + 1.6), height=2.9)
    axis, places = axes[0, 0], np.arange(len(names))
    axis.bar(places - 0.2, structure, 0.38, color=COLOURS[2], label="structure")
    axis.bar(places + 0.2, features, 0.38, color=COLOURS[4], hatch="//", label="features")
    if float(found.node_readout.abs().sum()):
        axis.bar([len(names)], [float(found.readout)], 0.6, color=COLOURS[3], hatch="..", label="sum over nodes")
        names.append("sum")
    axis.axhline(0, color=INK, lw=0.7)
    axis.set_xticks(range(len(names)), names)
    axis.set(xlabel="template", ylabel="contribution")
    axis.legend(fontsize="small")
    return figure


@styled
def _draw_plan(data: ReportData, drawing: DrawnGraph, found: Explanation, template: int, looks: NodeLooks) -> "Figure":
    figure, axes = bare_figure(1, width=5.2, height=2.6)
    plan = found.plans[:, template].numpy()[:, live_nodes(data.model, template)]
    draw_matching(axes[0], drawing, template_drawing(data.model, template, looks), plan)
    return figure


def _node_table(drawing: DrawnGraph, found: Explanation) -> Table:
    structure, features = found.node_structure.sum(0), found.node_features.sum(0)
    columns = zip(
        named_nodes(drawing.names), structure, features, found.node_readout, found.node_mask[:, 0], strict=True
    )
    rows = [[name, *map(float, values)] for name, *values in columns]
    rows.append(["all", *(float(v.sum()) for v in (structure, features, found.node_readout, found.node_mask))])
    return Table(["node", "structure", "features", "sum over nodes", "total"], rows)


def _template_table(found: Explanation) -> Table:
    columns = zip(found.distances, found.template_structure, found.template_features, found.templates, strict=True)
    rows: list[list[object]] = [[k + 1, *map(float, values)] for k, values in enumerate(columns)]
    rows.append(["sum over nodes", None, None, None, float(found.readout)])
    return Table(["template", "distance", "structure", "features", "contribution"], rows)


def _sums(found: Explanation, target: str) -> Table:
    steps = [
        ["score of the reference", found.reference_score],
        ["structure of all templates", found.template_structure.sum()],
        ["features of all templates", found.template_features.sum()],
        ["sum over nodes", found.readout],
        [f"score of {target}", found.score],
        ["residual of the sum", found.reference_score + found.templates.sum() + found.readout - found.score],
    ]
    return Table(
        ["", "value"], [[name, float(torch.as_tensor(value))] for name, value in steps], "Sum of the contributions"
    )


def _margin(data: ReportData) -> np.ndarray:
    """Return the margin between the best and the second class."""
    ordered = np.sort(data.probabilities, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2] if ordered.shape[1] > 1 else ordered[:, -1])


def _distinct(found: list[tuple[int, str]]) -> dict[int, str]:
    chosen: dict[int, str] = {}
    for number, why in found:
        chosen.setdefault(number, why)
    return chosen

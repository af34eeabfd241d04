"""Plots of the templates and their nearest training graphs."""

import numpy as np

from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.plot_style import bare_figure, styled
from tfgw.plot.template_plot import live_nodes, template_drawing, template_of
from tfgw.report.page import Plot, Section, Table, Text
from tfgw.report.report_data import TRAINING, Drawings, ReportData

MOST_TEMPLATES = 12
NEAREST = 2


def template_section(data: ReportData, drawings: Drawings) -> Section:
    """One drawing per template."""
    count = data.distances.shape[1]
    text = (
        f"Node size shows the weight, link opacity the entry of C̄, and node colour: {drawings.looks.legend}."
        " Next to each template are its nearest training graphs."
    )
    shown = _shown(data)
    if len(shown) < count:
        text += f" Of {count} templates, the {len(shown)} whose distances vary most between graphs are shown."
    return Section("templates", "Templates", [Text(text), *(_plot(data, number, drawings) for number in shown)])


def _shown(data: ReportData) -> list[int]:
    """Return the templates to draw: all, or those whose distances vary most."""
    spread = data.distances.std(axis=0) / np.maximum(data.distances.mean(axis=0), 1e-300)
    return sorted(np.argsort(-spread, kind="stable")[:MOST_TEMPLATES].tolist())


@styled
def _plot(data: ReportData, number: int, drawings: Drawings) -> Plot:
    chosen = np.flatnonzero(data.part == TRAINING)
    if not len(chosen):
        chosen = np.arange(len(data))
    nearest = chosen[np.argsort(data.distances[chosen, number], kind="stable")[:NEAREST]].tolist()
    figure, axes = bare_figure(1 + len(nearest), width=1.75, height=1.95)
    network, own = template_of(data.model, number)
    template = template_drawing(data.model, number, drawings.looks)
    draw_graph(axes[0], template)
    axes[0].set_title(f"template {number + 1}", fontsize="medium")
    for axis, graph in zip(axes[1:], nearest, strict=True):
        draw_graph(axis, drawings[graph])
        axis.set_title(f"graph {data.names[graph]}\ndistance {data.distances[graph, number]:.3g}", fontsize="small")
    weights = network.pool.template_weights[own].detach().cpu().numpy()
    live = live_nodes(data.model, number)
    rows = [[node, name or "–", float(weights[node])] for node, name in zip(live.tolist(), template.names, strict=True)]
    near = ", ".join(f"{data.names[graph]} ({data.groups[graph]})" for graph in nearest)
    alt = f"Template {number + 1} with {len(live)} live nodes, next to the nearest graphs {near}."
    caption = f"Nearest training graphs: {near}."
    return Plot(f"template-{number + 1}", figure, alt, caption, Table(["node", "name", "weight"], rows))

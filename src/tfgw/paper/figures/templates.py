"""Learned templates and samples of the data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.datasets import load
from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.plot.drawing_data import drawn_template, principal_shades
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.plot_style import new_figure, styled

SAMPLES = 4


@styled
def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Node size shows the weight, edge opacity the entry of C, and node colour the features."""
    (model,) = embedded_models(experiment, series[:1], records)
    kept = model.result["embedding"]
    templates = [
        (np.array(C), np.array(F), np.array(h))
        for C, F, h in zip(kept["template_structure"], kept["template_features"], kept["template_weights"], strict=True)
    ]
    samples = _samples(series[0].dataset, data_dir, nodes=len(templates[0][0]))
    shades = principal_shades(np.concatenate([F for _, F, _ in (*templates, *samples)]))
    figure, axes = new_figure(max(len(templates), len(samples)), rows=2, width=2.6, height=2.6)
    for axis in axes.flat:
        axis.set_axis_off()
    for number, (axis, graph) in enumerate(zip(axes[0], templates, strict=False)):
        _draw_one(axis, graph, shades, f"template {number + 1}\npredicted class {model.template_classes[number]}")
    for number, (axis, graph) in enumerate(zip(axes[1], samples, strict=False)):
        _draw_one(axis, graph, shades, f"graph of {series[0].dataset}\nclass {number % 2}")
    figure.supxlabel(
        "node size: weight; edge opacity: entry of C; node colour: first principal component of the features",
        fontsize="medium",
    )
    return figure


def _samples(name: str, data_dir: Path | None, *, nodes: int) -> list[Any]:
    """Graphs of the size of a template, classes in turn."""
    dataset = load(name, data_dir=data_dir)
    by_class: dict[int, list[Any]] = {0: [], 1: []}
    for graph in dataset:
        if graph.num_nodes == nodes:
            C = np.zeros((nodes, nodes))
            C[tuple(graph.edge_index.numpy())] = 1
            by_class[int(graph.y)].append((C, graph.x.numpy(), np.full(nodes, 1 / nodes)))
    return [by_class[number % 2][number // 2] for number in range(SAMPLES)]


def _draw_one(axis: Any, graph: tuple[np.ndarray, np.ndarray, np.ndarray], shades: Any, title: str) -> None:
    C, F, h = graph
    live = h > 0
    draw_graph(axis, drawn_template(C[live][:, live], F[live], h[live], lambda rows: (("",) * len(rows), shades(rows))))
    axis.set_title(title, fontsize="medium")

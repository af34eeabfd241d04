"""Learned templates beside samples of the data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from tfgw.paper.cell_graphs import load_graphs
from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import new_figure
from tfgw.paper.figures.embedded import embedded_models
from tfgw.paper.figures.graphs import draw_edges, spread_layout
from tfgw.paper.records import Records
from tfgw.paper.series import Series

SAMPLES = 4


def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Node size is its weight, an edge's shade its entry of C, the colour of a node comes from its features."""
    (model,) = embedded_models(experiment, series[:1], records)
    kept = model.result["embedding"]
    templates = [
        (np.array(C), np.array(F), np.array(h))
        for C, F, h in zip(kept["template_structure"], kept["template_features"], kept["template_weights"], strict=True)
    ]
    samples = _samples(series[0].dataset, data_dir, nodes=len(templates[0][0]))
    colour = _colours([F for _, F, _ in (*templates, *samples)])
    figure, axes = new_figure(max(len(templates), len(samples)), rows=2, width=2.6, height=2.6)
    for axis in axes.flat:
        axis.set_axis_off()
    for number, (axis, graph) in enumerate(zip(axes[0], templates, strict=False)):
        _draw_one(axis, graph, colour, f"template {number + 1}\npredicted class {model.template_classes[number]}")
    for number, (axis, graph) in enumerate(zip(axes[1], samples, strict=False)):
        _draw_one(axis, graph, colour, f"graph of {series[0].dataset}\nclass {number % 2}")
    figure.supxlabel(
        "node size: weight; edge shade: entry of C; node colour: first principal component of the features",
        fontsize="medium",
    )
    return figure


def _samples(name: str, data_dir: Path | None, *, nodes: int) -> list[Any]:
    """Graphs of the size of a template, classes in turn."""
    dataset = load_graphs(name, data_dir)
    by_class: dict[int, list[Any]] = {0: [], 1: []}
    for graph in dataset:
        if graph.num_nodes == nodes:
            C = np.zeros((nodes, nodes))
            C[tuple(graph.edge_index.numpy())] = 1
            by_class[int(graph.y)].append((C, graph.x.numpy(), np.full(nodes, 1 / nodes)))
    return [by_class[number % 2][number // 2] for number in range(SAMPLES)]


def _colours(features: list[np.ndarray]) -> Any:
    """A colour for each row of features: its first principal component over all graphs shown, on a colour map."""
    from matplotlib import colormaps

    rows = np.concatenate(features)
    pca = PCA(1).fit(rows)
    low, high = np.percentile(pca.transform(rows), [2, 98])
    return lambda F: colormaps["viridis"](np.clip((pca.transform(F)[:, 0] - low) / (high - low), 0, 1))


def _draw_one(axis: Any, graph: tuple[np.ndarray, np.ndarray, np.ndarray], colour: Any, title: str) -> None:
    C, F, h = graph
    live = h > 0
    C, F, h = C[live][:, live], F[live], h[live]
    places = spread_layout(C)
    edges = np.stack(np.nonzero(C > 0.02))
    draw_edges(axis, places, edges, width=1.5, shades=C[tuple(edges)])
    axis.scatter(*places.T, s=900 * h, c=colour(F), edgecolors="black", zorder=2, lw=0.7)
    axis.set_title(title, fontsize="medium")
    axis.margins(0.15)

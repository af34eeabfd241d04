"""Samples of 4-CYCLES and SKIP-CIRCLES."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset, four_cycles, skip_circles
from tfgw.paper.experiment import Experiment
from tfgw.paper.isomorphism import isomorphism_groups
from tfgw.paper.records import Records
from tfgw.paper.series import Series
from tfgw.plot.drawing_data import plain_drawing
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.layouts import circle_layout, cycle_layout
from tfgw.plot.plot_style import class_colour, new_figure, styled


@styled
def draw(experiment: Experiment, series: Sequence[Series], records: Records, data_dir: Path | None) -> Any:
    """Two graphs of each class of 4-CYCLES above, four classes of SKIP-CIRCLES below."""
    figure, axes = new_figure(4, rows=2, width=2.4, height=2.5)
    cycles = four_cycles(seed=0).train
    for axis, number in zip(axes[0], _kinds(cycles), strict=True):
        graph = cycles[number]
        title = f"4-CYCLES\n{'a' if int(graph.y) else 'no'} 4-cycle"
        _draw_one(axis, graph, cycle_layout(graph.edge_index.numpy(), graph.num_nodes), title, int(graph.y))
    circles = skip_circles(permute=False).train
    for number, (axis, label) in enumerate(zip(axes[1], (0, 3, 6, 9), strict=True)):
        graph = circles[label]
        title = f"SKIP-CIRCLES\nchords of {circles.classes[label]}"
        _draw_one(axis, graph, circle_layout(graph.num_nodes), title, 2 + number)
    return figure


def _kinds(cycles: GraphDataset) -> list[int]:
    """Two graphs of each class, no two isomorphic."""
    firsts = np.unique(isomorphism_groups(cycles), return_index=True)[1]
    return [int(number) for label in (0, 1) for number in [n for n in firsts if int(cycles[int(n)].y) == label][:2]]


def _draw_one(axis: Any, graph: Any, places: np.ndarray, title: str, colour: int) -> None:
    draw_graph(axis, plain_drawing(places, graph.edge_index.numpy(), class_colour(colour)))
    axis.set_title(title, fontsize="medium")

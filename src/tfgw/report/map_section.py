"""The map of all graphs by their distances to templates or training graphs, and the distances by class."""

from collections.abc import Mapping

import numpy as np

from tfgw.plot import distances_by_class
from tfgw.plot.embedding_plot import Method, draw_map, plane_map
from tfgw.plot.plot_style import new_figure, styled
from tfgw.report.page import Plot, Section, Table
from tfgw.report.report_data import TEST, ReportData

MOST_GROUPS = 10
MOST_BOXES = 80
"""Maximum number of boxes (templates × classes); further templates are left out."""


@styled
def map_section(data: ReportData, links: Mapping[int, str], *, method: Method = "pca") -> Section:
    """Plot a map with a point for each graph; ``links`` are anchors of sections about some of them."""
    plane = plane_map(data.distances, method=method)
    figure, axes = new_figure(width=7.4, height=5.2)
    groups = draw_map(axes[0, 0], plane, data.groups, order=data.group_order, is_test=data.part == TEST)
    points = {
        "groups": groups,
        "texts": [_about(data, number) for number in range(len(data))],
        "links": {str(number): name for number, name in links.items()},
    }
    rows = [
        [data.names[i], str(data.part[i]), data.truth(i), data.values(i), float(x), float(y)]
        for i, (x, y) in enumerate(plane.points)
    ]
    numbers = Table(["graph", "part", "true", "predicted", *plane.axes], rows)
    kernel = data.kernel
    compared = "the templates" if kernel is None else f"{len(kernel.landmarks)} training graphs"
    kind = "" if kernel is None else f" (level {kernel.level}, α = {kernel.alpha:g})"
    alt = f"Map of {len(data)} graphs by their distances to {compared}."
    caption = f"Test graphs have an outline. Nearby graphs have similar distances to {compared}{kind}."
    block = Plot("map", figure, alt, caption, numbers, points=points)
    return Section("map", "Map of the graphs", [block, *(_by_class(data) if kernel is None else [])])


def _about(data: ReportData, number: int) -> str:
    truth, kernel = data.truth(number), data.kernel
    left_out = kernel is not None and data.part[number] == kernel.training_part
    lines = [
        f"graph {data.names[number]} ({data.part[number]})",
        f"predicted{' (leave-one-out)' if left_out else ''}: {data.values(number)}",
        *([] if truth is None else [f"true: {truth}"]),
    ]
    if kernel is None:
        nearest = int(data.distances[number].argmin())
        lines.append(f"nearest template: {nearest + 1} (distance {data.distances[number, nearest]:.3g})")
    return "\n".join(lines)


def _by_class(data: ReportData) -> list[Plot]:
    order = [name for name in data.group_order if name in set(data.groups)]
    if len(order) > MOST_GROUPS:
        return []
    distances, names = data.distances[:, : max(1, MOST_BOXES // len(order))], np.array(data.groups)
    rows = [
        [template + 1, name, *map(float, np.quantile(distances[names == name, template], [0.25, 0.5, 0.75]))]
        for template in range(distances.shape[1])
        for name in order
    ]
    numbers = Table(["template", "class", "first quartile", "median", "third quartile"], rows)
    figure = distances_by_class(distances, data.groups, order)
    alt = "Boxes of the distances of all graphs to each template, by class."
    caption = "Distances to each template, by class. A template whose boxes do not overlap separates them."
    return [Plot("distances", figure, alt, caption, numbers)]

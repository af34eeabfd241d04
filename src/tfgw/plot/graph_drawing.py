"""Draw graphs: nodes with names, links by strength or bond order, signed values as rings and lines."""

from typing import Any

import numpy as np

from tfgw.plot.drawing_data import DrawnGraph
from tfgw.plot.plot_style import AGAINST, FOR, INK

NODE_AREA = 190
ROOMY = 2.4
"""Size of a drawing, in inches, in which nodes have their default size."""
SMALLEST_NAMED = 40
"""Minimum area of a node with a name."""
BOND_GAP = 0.045
"""Distance between the lines of a double bond, in a drawing of width 2."""


def draw_graph(
    axis: Any, graph: DrawnGraph, *, node_values: np.ndarray | None = None, link_values: np.ndarray | None = None
) -> None:
    """Draw a graph on an axis.

    Args:
        axis: A matplotlib axis.
        graph: The drawing.
        node_values: Signed values, shown as discs behind the nodes: blue for positive values, orange with a dashed
            outline for negative values, with the size showing the magnitude.
        link_values: Signed values of links, shown as broad lines behind them, on the same scale as those of nodes.
    """
    axis.set_axis_off()
    axis.set_aspect("equal", adjustable="datalim")
    inches = axis.get_window_extent().width / axis.figure.dpi
    area = NODE_AREA * min(1.0, (18 / max(1, len(graph.names))) ** 0.8) * min(1.0, inches / ROOMY)
    given = [np.abs(values).max() for values in (node_values, link_values) if values is not None and len(values)]
    scale = float(max(given, default=0.0)) or 1.0
    if link_values is not None:
        _draw_values_of_links(axis, graph, link_values / scale)
    _draw_links(axis, graph)
    if node_values is not None:
        _draw_values_of_nodes(axis, graph, node_values / scale, area)
    sizes = area * np.clip(graph.weights * max(1, (graph.weights > 0).sum()), 0.12, 3.5)
    axis.scatter(*graph.places.T, s=sizes, c=list(graph.colours), edgecolors=INK, lw=0.6, zorder=3, clip_on=False)
    for place, name, colour, size in zip(graph.places, graph.names, graph.colours, sizes, strict=True):
        if name and size >= SMALLEST_NAMED:
            style = {"color": _readable_on(colour), "fontsize": _font(name, min(size, area)), "weight": "bold"}
            axis.text(*place, name, ha="center", va="center", zorder=4, clip_on=False, **style)
    axis.margins(0.18)


def _draw_links(axis: Any, graph: DrawnGraph) -> None:
    kinds: dict[tuple[str, float], list[np.ndarray]] = {}
    for (source, target), strength, order in zip(graph.links.T, graph.strengths, graph.orders, strict=True):
        ends = graph.places[[source, target]]
        opacity = round(0.1 + 0.8 * float(np.clip(strength, 0, 1)), 1)
        for shift, style in _lines(order):
            kinds.setdefault((style, opacity), []).append(ends + shift * BOND_GAP * _normal(ends))
    for (style, opacity), segments in sorted(kinds.items(), key=lambda kind: kind[0]):
        draw_segments(axis, np.array(segments), color=INK, alpha=opacity, lw=1.3, linestyle=style, zorder=2)


def draw_segments(axis: Any, segments: np.ndarray, **style: Any) -> None:
    """Draw straight lines ``(count, 2, 2)`` of one style as a single path, for small files."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = np.tile([Path.MOVETO, Path.LINETO], len(segments))
    axis.add_patch(PathPatch(Path(segments.reshape(-1, 2), codes), fill=False, clip_on=False, **style))


def _lines(order: float) -> list[tuple[float, str]]:
    """Return offset and style of each line of a bond."""
    if order == 1.5:
        return [(-0.5, "-"), (0.5, "--")]
    return {2: [(-0.5, "-"), (0.5, "-")], 3: [(-1.0, "-"), (0.0, "-"), (1.0, "-")]}.get(int(order), [(0.0, "-")])


def _normal(ends: np.ndarray) -> np.ndarray:
    along = ends[1] - ends[0]
    length = np.linalg.norm(along)
    return np.array([-along[1], along[0]]) / (length if length > 0 else 1)


def _draw_values_of_nodes(axis: Any, graph: DrawnGraph, values: np.ndarray, area: float) -> None:
    for sign, colour, style in ((1, FOR, "-"), (-1, AGAINST, "--")):
        chosen = sign * values > 0.02
        sizes = area * (1.3 + 4.2 * np.abs(values[chosen]))
        axis.scatter(*graph.places[chosen].T, s=sizes, color=colour, alpha=0.45, linestyle=style, edgecolors=colour,
                     lw=1.4, zorder=1)  # fmt: skip


def _draw_values_of_links(axis: Any, graph: DrawnGraph, values: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    shown = np.abs(values) > 0.02
    segments = graph.places[graph.links.T[shown]]
    colours = [(*_rgb(FOR if value > 0 else AGAINST), 0.5) for value in values[shown]]
    widths = 9 * np.abs(values[shown])
    axis.add_collection(LineCollection(list(segments), colors=colours, linewidths=widths, zorder=0.5))


def _font(name: str, area: float) -> float:
    return 0.55 * float(np.sqrt(area)) / max(1.0, 0.75 * len(name) ** 0.8)


def _rgb(colour: Any) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue


def _readable_on(colour: Any) -> str:
    """Return white or near-black, whichever has more contrast by WCAG; pages may replace the near-black."""
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(colour)]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], channels))
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.06 else "#1b1d1e"

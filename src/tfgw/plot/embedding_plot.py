"""Two-dimensional maps of graphs by their distances to the templates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tfgw.estimators.any_model import open_model
from tfgw.plot.plot_style import INK, class_colour, class_marker, new_figure, styled
from tfgw.plot.template_plot import all_distances

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["pca", "tsne"]


class PlaneMap(NamedTuple):
    """Points ``(n, 2)`` and labels of the two axes."""

    points: np.ndarray
    axes: tuple[str, str]


@styled
def embedding(
    model: Any, graphs: Sequence[Any], labels: Sequence[Any] | None = None, *, method: Method = "pca"
) -> "Figure":
    """Plot a map of graphs by their distances to the templates.

    Args:
        model: A trained model, a fitted estimator, or a network.
        graphs: Graphs to plot.
        labels: Label of each graph, which sets its colour and marker.
        method: ``"pca"``, principal components, or ``"tsne"``, scikit-learn's t-SNE.
    """
    opened = open_model(model)
    distances = all_distances(opened, opened.prepare(opened.graphs(graphs)))
    names = ["graph"] * len(distances) if labels is None else [str(label) for label in np.asarray(labels).tolist()]
    if len(names) != len(distances):
        raise ValueError(f"labels: got {len(names)} labels for {len(distances)} graphs")
    figure, axes = new_figure(width=5.2, height=4.2)
    draw_map(axes[0, 0], plane_map(distances, method=method), names)
    return figure


def plane_map(distances: np.ndarray, *, method: Method = "pca", others: np.ndarray | None = None) -> PlaneMap:
    """Compute two coordinates for each row; ``others`` are projected but not used for fitting (only ``"pca"``)."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if method not in ("pca", "tsne"):
        raise ValueError(f"method: must be 'pca' or 'tsne', got {method!r}")
    if method == "tsne" and len(distances) > 3 and others is None:
        perplexity = min(30.0, (len(distances) - 1) / 3)
        points = TSNE(2, random_state=0, perplexity=perplexity).fit_transform(distances)
        return PlaneMap(np.asarray(points), ("t-SNE 1", "t-SNE 2"))
    count = min(2, *distances.shape)
    pca = PCA(count).fit(distances)
    points = pca.transform(distances if others is None else np.concatenate([distances, others]))
    shares = [*(100 * np.nan_to_num(pca.explained_variance_ratio_)), 0.0][:2]
    points = np.concatenate([points, np.zeros((len(points), 2 - count))], axis=1)
    return PlaneMap(points, (f"first component ({shares[0]:.0f} %)", f"second component ({shares[1]:.0f} %)"))


def draw_map(
    axis: Any,
    plane: PlaneMap,
    names: Sequence[str],
    *,
    order: Sequence[str] = (),
    is_test: np.ndarray | None = None,
) -> list[list[int]]:
    """Plot points by the name of their class; test graphs have an outline.

    Returns:
        The points of each scatter, in the order drawn; their group ids are ``points-0``, ``points-1``, …
    """
    drawn: list[list[int]] = []
    known = list(dict.fromkeys([*order, *names]))
    array, tests = np.array(names), np.zeros(len(names), dtype=bool) if is_test is None else is_test
    for number, name in enumerate(known):
        for part in (False, True):
            chosen = np.flatnonzero((array == name) & (tests == part))
            if not len(chosen):
                continue
            style = {"color": class_colour(number), "marker": class_marker(number), "alpha": 0.9 if part else 0.55}
            label = f"{name}{', test' if part else ''}" if is_test is not None else name
            points = axis.scatter(*plane.points[chosen].T, s=22, lw=1.0 if part else 0, label=label,
                                  edgecolors=INK if part else "none", **style)  # fmt: skip
            points.set_gid(f"points-{len(drawn)}")
            drawn.append(chosen.tolist())
    axis.set(xlabel=plane.axes[0], ylabel=plane.axes[1])
    if len(known) <= 12:
        axis.legend(fontsize="small", loc="best")
    return drawn

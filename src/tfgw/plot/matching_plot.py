"""Plot of a graph and a template, with the transport plan as links between them."""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.estimators.any_model import INPUTS, AnyModel, open_model
from tfgw.nn.threads import networks_on_one_thread
from tfgw.plot.drawing_data import DrawnGraph, drawn_graph
from tfgw.plot.graph_drawing import draw_graph, draw_segments
from tfgw.plot.plot_style import INK, new_figure, styled
from tfgw.plot.template_plot import live_nodes, node_looks, template_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_SHARE = 0.15
"""Minimum share of a node's weight for a link to be drawn."""


@styled
def matching(model: Any, graph: Any, template: int | None = None) -> "Figure":
    """Plot the matching between the nodes of a graph and a template.

    Args:
        model: A trained model, a fitted estimator, or a network.
        graph: Graph to plot, as in :func:`tfgw.explain`.
        template: Index of the template, from 0 (default: the nearest).
    """
    opened = open_model(model)
    prepared = opened.prepare(opened.graphs([graph]))[0]
    solved = solved_plans(opened, prepared)
    number = int(solved.distances.argmin()) if template is None else template
    looks = node_looks(opened, [prepared.x.double().numpy()])
    target = template_drawing(opened, number, looks)
    plan = solved.plans[:, number][:, live_nodes(opened, number)]
    figure, axes = new_figure(width=6.2, height=3.0)
    draw_matching(axes[0, 0], drawn_graph(prepared, looks), target, plan)
    axes[0, 0].set_title(f"the graph and template {number + 1} (distance {solved.distances[number]:.3g})")
    return figure


class SolvedPlans(NamedTuple):
    """Distances of one graph to all templates, ``(K,)``, and the plans, ``(n, K, m)``."""

    distances: np.ndarray
    plans: np.ndarray


def solved_plans(model: AnyModel, prepared: Data) -> SolvedPlans:
    """Solve for one preprocessed graph."""
    inputs = {key: prepared[key] for key in INPUTS if key in prepared}
    distances, plans = [], []
    with torch.inference_mode(), networks_on_one_thread():
        for network in model.networks:
            own = network.pool.template_weights
            typed = {key: value.to(own if value.is_floating_point() else own.device) for key, value in inputs.items()}
            encoded = network.encoder(typed.pop("x"), typed["edge_index"])
            solved = network.pool.solve(encoded, typed.pop("edge_index"), **typed)
            distances.append(solved.distances[0].double().cpu().numpy())
            plans.append(cast(Tensor, solved.plans).cpu().numpy())
    return SolvedPlans(np.concatenate(distances), np.concatenate(plans, axis=1))


def draw_matching(axis: Any, graph: DrawnGraph, template: DrawnGraph, plan: np.ndarray) -> None:
    """Draw a graph and a template side by side, connected by the entries of the plan ``(n, m)``."""
    left, right = graph.moved((-1.75, 0)), template.moved((1.75, 0))
    draw_graph(axis, left)
    draw_graph(axis, right)
    share = plan / np.maximum(plan.sum(axis=1, keepdims=True), 1e-300)
    source, target = np.nonzero(share >= LEAST_SHARE)
    segments = np.stack([left.places[source], right.places[target]], axis=1)
    opacity = np.round(0.75 * share[source, target], 1)
    for value in np.unique(opacity).tolist():
        draw_segments(axis, segments[opacity == value], color=INK, alpha=value, lw=0.9, linestyle=":", zorder=0.2)

"""Plot of the templates of a model and their nearest graphs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tfgw.estimators.any_model import AnyModel, open_model
from tfgw.nn import TFGWModel
from tfgw.nn.threads import networks_on_one_thread
from tfgw.plot.drawing_data import DrawnGraph, NodeLooks, drawn_graph, drawn_template
from tfgw.plot.graph_drawing import draw_graph
from tfgw.plot.plot_style import new_figure, styled
from tfgw.train import embeddings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def templates(
    model: Any, *, graphs: Sequence[Any] | None = None, numbers: Sequence[int] | None = None, columns: int = 4
) -> "Figure":
    """Plot the templates of a model.

    Node size shows the weight, link opacity the entry of C̄, and node colour the label or degree, or the first
    principal component of real-valued features. Nodes of weight 0 are not drawn.

    Args:
        model: A trained model, a fitted estimator, or a network.
        graphs: Graphs, such as the training graphs, of which the nearest is plotted next to each template.
        numbers: Indices of the templates to plot, from 0 (default: all).
        columns: Number of templates per row.
    """
    opened = open_model(model)
    chosen = list(range(num_templates(opened))) if numbers is None else list(numbers)
    prepared = None if graphs is None else opened.prepare(opened.graphs(graphs))
    looks = node_looks(opened, [] if prepared is None else [prepared[n].x.numpy() for n in range(len(prepared))])
    per_template = 1 if prepared is None else 2
    wide = min(columns, len(chosen)) * per_template
    rows = -(-len(chosen) * per_template // wide)
    figure, axes = new_figure(wide, rows=rows, width=2.1, height=2.2)
    for axis in axes.flat:
        axis.set_axis_off()
    places = iter(axes.flat)
    distances = None if prepared is None else all_distances(opened, prepared)
    for number in chosen:
        axis = next(places)
        draw_graph(axis, template_drawing(opened, number, looks))
        axis.set_title(f"template {number + 1}", fontsize="medium")
        if prepared is not None and distances is not None:
            nearest = int(distances[:, number].argmin())
            axis = next(places)
            draw_graph(axis, drawn_graph(prepared[nearest], looks))
            axis.set_title(f"graph {nearest}, distance {distances[nearest, number]:.2g}", fontsize="medium")
    return figure


def num_templates(model: AnyModel) -> int:
    """Return the total number of templates of all networks."""
    return sum(member.config.num_templates for member in model.networks)


def template_of(model: AnyModel, number: int) -> tuple[TFGWModel, int]:
    """Return the network of a template, and its index in the network."""
    each = model.networks[0].config.num_templates
    if not 0 <= number < num_templates(model):
        raise ValueError(f"template: must be from 0 to {num_templates(model) - 1}, got {number}")
    return model.networks[number // each], number % each


def live_nodes(model: AnyModel, number: int) -> np.ndarray:
    """Return the nodes of a template with positive weight."""
    network, own = template_of(model, number)
    return np.flatnonzero(network.pool.template_weights[own].detach().cpu().numpy() > 0)


def template_drawing(model: AnyModel, number: int, looks: NodeLooks) -> DrawnGraph:
    """Create the drawing of a template, without nodes of weight 0."""
    network, own = template_of(model, number)
    live = live_nodes(model, number)
    structure, features, weights = (
        tensor[own].detach().cpu().double().numpy()
        for tensor in (network.pool.template_structure, network.pool.template_features, network.pool.template_weights)
    )
    return drawn_template(structure[np.ix_(live, live)], raw_features(network, features[live]), weights[live], looks.of)


def raw_features(network: TFGWModel, features: np.ndarray) -> np.ndarray:
    """Return the raw features, which are the first part of the encoded features (Jumping Knowledge)."""
    return features if network.has_own_encoder else features[:, : network.config.in_channels]


def node_looks(model: AnyModel, features: Sequence[np.ndarray] = ()) -> NodeLooks:
    """Create names and colours for the nodes of graphs and templates."""
    rows = [row for row in features if len(row)]
    if not rows:
        rows = [
            raw_features(m, m.pool.template_features.detach().cpu().double().flatten(0, 1).numpy())
            for m in model.networks
        ]
    return NodeLooks(model, np.concatenate(rows))


def all_distances(model: AnyModel, prepared: Any) -> np.ndarray:
    """Compute the distances of preprocessed graphs to all templates or training graphs, ``(graphs, templates)``."""
    models = model.networks if model.kernel is None else [model.kernel]
    with torch.inference_mode(), networks_on_one_thread():
        return np.concatenate([embeddings(m, prepared).double().cpu().numpy() for m in models], axis=1)

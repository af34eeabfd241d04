"""Templates from data: graphs ─ sampled class by class ─▶ sources ─ encoder ─▶ templates."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from tfgw import ot
from tfgw.nn.encoders import Encoder
from tfgw.nn.template_sources import TemplateSource, draw_plain, draw_weighted
from tfgw.nn.tfgw_pooling import STRUCTURES
from tfgw.nn.threads import one_thread


def sample_templates(
    graphs: Sequence[Data],
    num_templates: int,
    template_nodes: int,
    *,
    structure: str = "adjacency",
    directed: bool = False,
    encoder: Encoder | None = None,
    dtype: torch.dtype | None = None,
    seed: int = 0,
) -> ot.Templates:
    """Sample templates from ``graphs``, evenly over the classes, for ``TFGWPooling.set_templates``.

    Plain graphs of exactly the template's size are used as they are. If there are too few, one is repeated with noise.
    If there is none, templates are random graphs with the mean density of the class and the k-means centres of its node
    features. If graphs have ``edge_weight``, ``node_weights`` or a precomputed ``structure``, templates keep them: each
    template is a graph of its class, with random nodes left out or duplicated to fit the size.

    Args:
        graphs: Training graphs with ``x``, ``edge_index`` and a class ``y`` (without ``y``, or with real-valued or
            multi-label targets, all graphs form one class).
        num_templates: Number of templates.
        template_nodes: Nodes per template.
        structure: ``"adjacency"``, ``"shortest_path"`` or ``"precomputed"``.
        directed: Whether structures may be asymmetric.
        encoder: Maps ``(x, edge_index)`` to the input features of the layer. It is applied once to all templates, on a
            copy, so that its running statistics do not change.
        dtype: Floating-point type of features and encoder (default: that of the graphs' features).
        seed: Random seed for template sampling.

    Returns:
        Templates, grouped by class. Their weights are uniform if the graphs have no node weights.
    """
    if not len(graphs):
        raise ValueError("graphs: at least one graph is required")
    if structure not in STRUCTURES:
        raise ValueError(f"structure: must be one of {', '.join(STRUCTURES)}, got {structure!r}")
    if dtype is not None:
        graphs = [_converted(graph, dtype) for graph in graphs]
    rng = np.random.default_rng(seed)
    if structure == "precomputed" or any(key in graphs[0] for key in ("edge_weight", "node_weights")):
        sources = draw_weighted(graphs, num_templates, template_nodes, structure, rng, directed=directed)
    else:
        sources = draw_plain(graphs, num_templates, template_nodes, structure, rng)
    features = _encoded(sources, encoder)
    nodes = [slice(None) if source.nodes is None else source.nodes for source in sources]
    matrices = [source.matrix[chosen][:, chosen] for source, chosen in zip(sources, nodes, strict=True)]
    return ot.Templates(
        features=torch.stack([x[chosen] for x, chosen in zip(features, nodes, strict=True)]),
        structure=torch.stack(matrices).to(features[0]),
        weights=_weights(sources),
    )


def _converted(graph: Data, dtype: torch.dtype) -> Data:
    if graph.x.dtype == dtype:
        return graph
    graph = copy.copy(graph)
    graph.x = graph.x.to(dtype)
    return graph


def _encoded(sources: list[TemplateSource], encoder: Encoder | None) -> list[Tensor]:
    """Return the encoded node features of each source."""
    batch = Batch.from_data_list([Data(x=source.x, edge_index=source.edge_index) for source in sources])
    x = batch.x
    if encoder is not None:
        with torch.no_grad(), one_thread():
            x = copy.deepcopy(encoder)(x, batch.edge_index)
    return list(x.split([len(source.x) for source in sources]))


def _weights(sources: list[TemplateSource]) -> Tensor | None:
    """Return the weights of the chosen nodes, scaled to sum to 1; uniform if they are all 0."""
    weights = [source.weights[source.nodes] for source in sources if source.weights is not None]
    if not weights:
        return None
    return torch.stack([h / h.sum() if h.sum() > 0 else torch.full_like(h, 1 / len(h)) for h in weights])

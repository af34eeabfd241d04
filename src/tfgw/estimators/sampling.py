"""Templates drawn from the training graphs, whatever these carry."""

import copy
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from tfgw import ot
from tfgw.nn import Encoder, sample_templates
from tfgw.nn.threads import one_thread

NOISE = 0.1  # standard deviation, relative to that of all features


def draw_templates(
    graphs: Sequence[Data],
    num_templates: int,
    template_nodes: int,
    *,
    structure: str,
    directed: bool,
    encoder: Encoder | None = None,
    seed: int,
) -> ot.Templates:
    """As many templates of each class as possible, for graphs that are ready for the model.

    Plain graphs go to :func:`tfgw.nn.sample_templates`. Where there are weights or precomputed structures, templates
    take them over: each one is a graph of its class, those of exactly the template's size first; of a larger graph
    random nodes are left out, of a smaller one random nodes are doubled. A graph that has to be taken again
    gets noise on its features.
    """
    if structure != "precomputed" and not any(key in graphs[0] for key in ("edge_weight", "node_weights")):
        return sample_templates(graphs, num_templates, template_nodes, structure=structure, encoder=encoder, seed=seed)
    rng = np.random.default_rng(seed)
    sources = [graphs[i] for i in _sources(graphs, num_templates, template_nodes, rng)]
    features = _encoded(sources, encoder, rng)
    chosen = [_nodes(len(graph.x), template_nodes, rng) for graph in sources]
    matrices = [_matrix(graph, structure, directed) for graph in sources]
    weights = [_weights(graph)[nodes] for graph, nodes in zip(sources, chosen, strict=True)]
    return ot.Templates(
        features=torch.stack([x[nodes] for x, nodes in zip(features, chosen, strict=True)]),
        structure=torch.stack([c[nodes][:, nodes] for c, nodes in zip(matrices, chosen, strict=True)]),
        weights=torch.stack([h / h.sum() if h.sum() > 0 else torch.full_like(h, 1 / len(h)) for h in weights]),
    )


def _sources(graphs: Sequence[Data], wanted: int, nodes: int, rng: np.random.Generator) -> list[int]:
    """Which graph each template is taken from, class by class."""
    y = [graph.get("y") for graph in graphs]
    has_classes = y[0] is not None and y[0].numel() == 1 and not y[0].is_floating_point()
    labels = np.array([int(value) for value in y]) if has_classes else np.zeros(len(graphs), dtype=int)
    classes, sources = np.unique(labels), []
    for number, label in enumerate(classes):
        members = rng.permutation(np.flatnonzero(labels == label)).tolist()
        members.sort(key=lambda i: len(graphs[i].x) != nodes)
        sources += list(islice(cycle(members), len(range(number, wanted, len(classes)))))
    return sources


def _encoded(sources: list[Data], encoder: Encoder | None, rng: np.random.Generator) -> list[Tensor]:
    """Node features of each source, as the pooling sees them."""
    batch = Batch.from_data_list([Data(x=graph.x, edge_index=graph.edge_index) for graph in sources])
    spread = batch.x.std(0, correction=0)
    taken: set[int] = set()
    parts = []
    for graph in sources:
        noise = torch.from_numpy(rng.normal(size=tuple(graph.x.shape))).to(graph.x)
        parts.append(graph.x + NOISE * spread * noise if id(graph) in taken else graph.x)
        taken.add(id(graph))
    x = torch.cat(parts)
    if encoder is not None:
        with torch.no_grad(), one_thread():  # on a copy, whose running statistics may change
            x = copy.deepcopy(encoder)(x, batch.edge_index)
    return list(x.split([len(graph.x) for graph in sources]))


def _nodes(available: int, wanted: int, rng: np.random.Generator) -> Tensor:
    order = rng.permutation(available)[:wanted]
    again = rng.integers(available, size=max(0, wanted - available))
    return torch.from_numpy(np.sort(np.concatenate([order, again])))


def _matrix(graph: Data, structure: str, directed: bool) -> Tensor:
    nodes = len(graph.x)
    if graph.get("structure") is not None:
        matrix = graph.structure.reshape(nodes, nodes).to(graph.x)
    else:
        matrix = to_dense_adj(graph.edge_index, edge_attr=graph.get("edge_weight"), max_num_nodes=nodes)[0].to(graph.x)
    matrix = matrix if structure == "precomputed" else matrix.clone().fill_diagonal_(0)
    return matrix if directed else (matrix + matrix.T) / 2


def _weights(graph: Data) -> Tensor:
    nodes = len(graph.x)
    return graph.x.new_full((nodes,), 1 / nodes) if graph.get("node_weights") is None else graph.node_weights

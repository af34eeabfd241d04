"""Sampling of the graphs for templates, class by class. Plain graphs are sampled as by the paper's authors; weighted
graphs and precomputed structures are used as they are."""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from tfgw.datasets.limits import check_array
from tfgw.nn.batched_structure import batched_shortest_paths

NOISE = 0.1  # standard deviation, relative to that of the features; absolute for structures


class TemplateSource(NamedTuple):
    """A graph of n nodes, from which a template takes m nodes (with repetition if n < m).

    Attributes:
        x: Node features before encoding ``(n, d)``.
        edge_index: Edges for the encoder.
        matrix: Structure ``(n, n)``, in double precision.
        weights: Node weights ``(n,)``. ``None`` means uniform template weights.
        nodes: Nodes of the template ``(m,)``. ``None`` means all nodes.
    """

    x: Tensor
    edge_index: Tensor
    matrix: Tensor
    weights: Tensor | None = None
    nodes: Tensor | None = None


def draw_plain(
    graphs: Sequence[Data], num_templates: int, template_nodes: int, structure: str, rng: np.random.Generator
) -> list[TemplateSource]:
    """Sample sources that have exactly the size of the template.

    For each class, graphs of that size are sampled. If there are too few, one of them is repeated with Gaussian noise.
    If there is none, the source is a random graph with the mean density of the class, whose features are the k-means
    centres of the node features of the class.
    """
    drawn: list[TemplateSource] = []
    noisy: list[bool] = []
    for members, wanted in _shares(graphs, num_templates):
        sources, repeated = _draw([graphs[i] for i in members], wanted, template_nodes, structure, rng)
        drawn += sources
        noisy += repeated
    matrices = _perturb(torch.stack([source.matrix for source in drawn]), torch.tensor(noisy), structure, rng)
    return [source._replace(matrix=matrix) for source, matrix in zip(drawn, matrices, strict=True)]


def draw_weighted(
    graphs: Sequence[Data],
    num_templates: int,
    template_nodes: int,
    structure: str,
    rng: np.random.Generator,
    *,
    directed: bool,
) -> list[TemplateSource]:
    """Sample graphs with their weights and structures, preferring those of exactly the template's size.

    Random nodes of larger graphs are left out, and random nodes of smaller graphs are duplicated. Noise is added to the
    features of a graph that is used again.
    """
    chosen: list[int] = []
    for members, wanted in _shares(graphs, num_templates):
        order = rng.permutation(members).tolist()
        order.sort(key=lambda i: len(graphs[i].x) != template_nodes)
        chosen += islice(cycle(order), wanted)
    spread = torch.cat([graphs[i].x for i in chosen]).std(0, correction=0)
    noise = [_noise(graphs[i].x, spread, rng) for i in chosen]
    return [
        TemplateSource(
            x=graphs[i].x if i not in chosen[:place] else graphs[i].x + noise[place],
            edge_index=graphs[i].edge_index,
            matrix=_matrix(graphs[i], structure, directed=directed),
            weights=_weights(graphs[i]),
            nodes=_nodes(len(graphs[i].x), template_nodes, rng),
        )
        for place, i in enumerate(chosen)
    ]


def _shares(graphs: Sequence[Data], num_templates: int) -> list[tuple[np.ndarray, int]]:
    """Return the graphs of each class, and the number of templates to sample from them.

    Without ``y``, or with real-valued or multi-label targets, all graphs form one class.
    """
    labels = np.array([_label(graph.get("y")) for graph in graphs])
    classes = np.unique(labels)
    return [
        (np.flatnonzero(labels == label), len(range(number, num_templates, len(classes))))
        for number, label in enumerate(classes)
    ]


def _label(y: Tensor | None) -> int:
    return int(y) if y is not None and y.numel() == 1 and not y.is_floating_point() else 0


def _draw(
    members: list[Data], wanted: int, nodes: int, structure: str, rng: np.random.Generator
) -> tuple[list[TemplateSource], list[bool]]:
    """Sample sources of one class; also return which of them are repetitions."""
    fitting = [graph for graph in members if graph.num_nodes == nodes]
    if not fitting:
        return [_random_graph(members, nodes, structure, rng) for _ in range(wanted)], [False] * wanted
    chosen = [fitting[i] for i in rng.permutation(len(fitting))[:wanted]]
    kept = [_plain_source(graph.x, graph.edge_index, structure) for graph in chosen]
    spread = torch.cat([graph.x for graph in members]).std(0, correction=0)
    repeated = []
    for _ in range(wanted - len(kept)):
        source = kept[rng.integers(len(kept))]
        repeated.append(source._replace(x=source.x + _noise(source.x, spread, rng)))
    return kept + repeated, [False] * len(kept) + [True] * len(repeated)


def _random_graph(members: list[Data], nodes: int, structure: str, rng: np.random.Generator) -> TemplateSource:
    density = np.mean([g.edge_index.shape[1] / max(1, g.num_nodes * (g.num_nodes - 1)) for g in members])
    links = np.triu(rng.random((nodes, nodes)) < density, 1)
    edge_index = torch.from_numpy(np.stack(np.nonzero(links | links.T)))
    return _plain_source(_centres(torch.cat([g.x for g in members]), nodes, rng), edge_index, structure)


def _centres(x: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """Return k-means centres of the rows of x, with repetition if x has too few distinct rows."""
    from sklearn.cluster import KMeans  # takes a second to import, and not needed by layers alone

    points = x.double().numpy()
    clusters = min(count, len(np.unique(points, axis=0)))
    fitted = KMeans(clusters, n_init=1, random_state=int(rng.integers(2**31))).fit(points)
    chosen = np.concatenate([np.arange(clusters), rng.integers(clusters, size=count - clusters)])
    return torch.from_numpy(fitted.cluster_centers_[chosen]).to(x)


def _plain_source(x: Tensor, edge_index: Tensor, structure: str) -> TemplateSource:
    if structure == "shortest_path":
        matrix = batched_shortest_paths(edge_index, len(x)).reshape(len(x), len(x)).double()
    else:  # duplicate edges count once
        matrix = to_dense_adj(edge_index, max_num_nodes=len(x))[0].double().fill_diagonal_(0).clamp_max(1)
    return TemplateSource(x, edge_index, matrix)


def _perturb(matrices: Tensor, noisy: Tensor, structure: str, rng: np.random.Generator) -> Tensor:
    """Add symmetric noise to repeated templates, within the constraint set of the layer."""
    upper = torch.from_numpy(rng.normal(size=tuple(matrices.shape))).triu(1)
    moved = matrices + NOISE * (upper + upper.mT)
    moved = moved.clamp(0, 1 if structure == "adjacency" else None)
    return torch.where(noisy[:, None, None], moved, matrices)


def _noise(x: Tensor, spread: Tensor, rng: np.random.Generator) -> Tensor:
    return NOISE * spread * torch.from_numpy(rng.normal(size=tuple(x.shape))).to(x)


def _matrix(graph: Data, structure: str, *, directed: bool) -> Tensor:
    """Return the structure matrix of a graph: its own ``structure``, or for adjacency its weighted edges."""
    nodes = len(graph.x)
    check_array(nodes, nodes, itemsize=8, what="structure of a graph to draw from", instead="leave out large graphs")
    if structure == "adjacency":
        matrix = to_dense_adj(graph.edge_index, edge_attr=graph.get("edge_weight"), max_num_nodes=nodes)[0]
    elif graph.get("structure") is not None:
        matrix = graph.structure
    elif structure == "shortest_path":
        matrix = batched_shortest_paths(graph.edge_index, nodes, edge_weight=graph.get("edge_weight"))
    else:
        raise ValueError("graphs: structure='precomputed' requires graphs with a structure")
    matrix = matrix.reshape(nodes, nodes).double()
    matrix = matrix if structure == "precomputed" else matrix.clone().fill_diagonal_(0)
    return matrix if directed else (matrix + matrix.T) / 2


def _weights(graph: Data) -> Tensor:
    nodes = len(graph.x)
    return graph.x.new_full((nodes,), 1 / nodes) if graph.get("node_weights") is None else graph.node_weights


def _nodes(available: int, wanted: int, rng: np.random.Generator) -> Tensor:
    order = rng.permutation(available)[:wanted]
    again = rng.integers(available, size=max(0, wanted - available))
    return torch.from_numpy(np.sort(np.concatenate([order, again])))

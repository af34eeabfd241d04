"""Templates taken from data, class by class, as the paper's authors do it.

For each class, training graphs that have exactly the template's size are drawn. Where there are too few, one of them
is repeated with Gaussian noise. Where there is none, the template is a random graph of the class's mean density whose
features are the k-means centres of the class's node features.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from tfgw import ot
from tfgw.nn.structure import batched_shortest_paths
from tfgw.nn.threads import one_thread

NOISE = 0.1  # standard deviation, relative to that of the class's features; absolute for structures

Encoder = Callable[[Tensor, Tensor], Tensor]


def sample_templates(
    graphs: Sequence[Data],
    num_templates: int,
    template_nodes: int,
    *,
    structure: str = "adjacency",
    encoder: Encoder | None = None,
    seed: int = 0,
) -> ot.Templates:
    """Templates drawn from ``graphs``, as many per class as possible, for ``TFGWPooling.set_templates``.

    Args:
        graphs: Training graphs with ``x``, ``edge_index`` and a class ``y`` (without ``y``, or with real-valued or
            multi-label ones, all graphs count as one class).
        num_templates: How many.
        template_nodes: Nodes of each.
        structure: ``"adjacency"`` or ``"shortest_path"``.
        encoder: Maps ``(x, edge_index)`` to the node features that the layer will see; applied once to all templates
            (on a copy, so that its running statistics stay as they are).
        seed: Of the drawing.

    Returns:
        Templates with uniform weights, those of one class next to each other.
    """
    if not len(graphs):
        raise ValueError("graphs: needs at least one graph to take templates from")
    if structure not in ("adjacency", "shortest_path"):
        raise ValueError(f"structure: must be 'adjacency' or 'shortest_path', got {structure!r}")
    rng = np.random.default_rng(seed)
    labels = _classes(graphs)
    drawn: list[Data] = []
    for index, label in enumerate(sorted(set(labels))):
        members = [g for g, y in zip(graphs, labels, strict=True) if y == label]
        wanted = len(range(index, num_templates, len(set(labels))))
        drawn += _draw(members, wanted, template_nodes, rng)
    matrices = torch.stack([_matrix(g, structure) for g in drawn])
    matrices = _perturb(matrices, torch.tensor([bool(g.noisy) for g in drawn]), structure, rng)
    batch = Batch.from_data_list([Data(x=g.x, edge_index=g.edge_index) for g in drawn])
    features = batch.x
    if encoder is not None:
        with torch.no_grad(), one_thread():
            features = copy.deepcopy(encoder)(batch.x, batch.edge_index)
    return ot.Templates(features.reshape(num_templates, template_nodes, -1), matrices.to(features))


def _classes(graphs: Sequence[Data]) -> list[int]:
    def label(graph: Data) -> int:
        y = graph.get("y") if isinstance(graph, Data) else None
        return int(y) if y is not None and y.numel() == 1 and not y.is_floating_point() else 0

    return [label(g) for g in graphs]


def _draw(members: list[Data], wanted: int, nodes: int, rng: np.random.Generator) -> list[Data]:
    fitting = [g for g in members if g.num_nodes == nodes]
    if not fitting:
        return [_random_graph(members, nodes, rng) for _ in range(wanted)]
    kept = [fitting[i] for i in rng.permutation(len(fitting))[:wanted]]
    drawn = [Data(x=g.x, edge_index=g.edge_index, noisy=False) for g in kept]
    spread = torch.cat([g.x for g in members]).std(0, correction=0)
    for _ in range(wanted - len(kept)):
        source = kept[rng.integers(len(kept))]
        noise = torch.from_numpy(rng.normal(size=tuple(source.x.shape))).to(source.x)
        drawn.append(Data(x=source.x + NOISE * spread * noise, edge_index=source.edge_index, noisy=True))
    return drawn


def _random_graph(members: list[Data], nodes: int, rng: np.random.Generator) -> Data:
    density = np.mean([g.edge_index.shape[1] / max(1, g.num_nodes * (g.num_nodes - 1)) for g in members])
    links = np.triu(rng.random((nodes, nodes)) < density, 1)
    edge_index = torch.from_numpy(np.stack(np.nonzero(links | links.T)))
    return Data(x=_centres(torch.cat([g.x for g in members]), nodes, rng), edge_index=edge_index, noisy=False)


def _centres(x: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """k-means centres of the rows of x, repeated where x has fewer distinct rows than that."""
    points = x.double().numpy()
    clusters = min(count, len(np.unique(points, axis=0)))
    fitted = KMeans(clusters, n_init=1, random_state=int(rng.integers(2**31))).fit(points)
    chosen = np.concatenate([np.arange(clusters), rng.integers(clusters, size=count - clusters)])
    return torch.from_numpy(fitted.cluster_centers_[chosen]).to(x)


def _matrix(graph: Data, structure: str) -> Tensor:
    n = graph.num_nodes
    if structure == "shortest_path":
        return batched_shortest_paths(graph.edge_index, n).reshape(n, n).double()
    adjacency = to_dense_adj(graph.edge_index, max_num_nodes=n)[0].double()
    return adjacency.fill_diagonal_(0).clamp_max(1)


def _perturb(matrices: Tensor, noisy: Tensor, structure: str, rng: np.random.Generator) -> Tensor:
    """Symmetric noise on the repeated templates, which keeps them in the layer's constraint set."""
    upper = torch.from_numpy(rng.normal(size=tuple(matrices.shape))).triu(1)
    moved = matrices + NOISE * (upper + upper.mT)
    moved = moved.clamp(0, 1 if structure == "adjacency" else None)
    return torch.where(noisy[:, None, None], moved, matrices)

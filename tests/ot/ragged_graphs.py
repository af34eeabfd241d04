"""Small graphs of different sizes for all pairs, in every form that is taken."""

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw import ot

SIZES = (7, 4, 11, 1, 6, 9, 4)


def random_graphs(kind: str = "sparse", seed: int = 0, sizes: Sequence[int] = SIZES, *, labels: int = 3) -> list[Data]:
    """Graphs with one-hot labels plus some noise, and a structure of this kind, or ``"none"``."""
    rng = np.random.default_rng(seed)
    graphs = []
    for n in sizes:
        x = np.eye(labels)[rng.integers(labels, size=n)] + 0.1 * rng.normal(size=(n, labels))
        graph = Data(x=torch.from_numpy(x))
        C = np.triu(rng.random((n, n)) < 0.4, 1) * (rng.random((n, n)) if kind == "weighted" else 1.0)
        C = C + C.T
        if kind == "directed":
            C = (rng.random((n, n)) < 0.4) * (1.0 - np.eye(n))
        if kind == "dense":
            graph.structure = torch.from_numpy(C + rng.random((n, n)))
        elif kind != "none":
            graph.edge_index = torch.from_numpy(np.stack(np.nonzero(C)))
        if kind == "weighted":
            graph.edge_weight = torch.from_numpy(C[np.nonzero(C)])
            weights = rng.random(n) + 0.1
            graph.node_weights = torch.from_numpy(weights / weights.sum())
        graphs.append(graph)
    return graphs


def matrix(graph: Data) -> torch.Tensor:
    """The structure as a dense matrix."""
    n = len(graph.x)
    if graph.get("structure") is not None:
        return graph.structure.reshape(n, n)
    C = torch.zeros(n, n, dtype=torch.float64)
    weights = graph.get("edge_weight")
    C[graph.edge_index[0], graph.edge_index[1]] = (
        torch.ones(graph.edge_index.shape[1], dtype=torch.float64) if weights is None else weights
    )
    return C


def alone(graph: Data, template: Data, alpha: float, **options: object) -> float:
    """The distance of one pair, by :func:`tfgw.ot.fgw`."""
    edges = {key: graph[key] for key in ("edge_index", "edge_weight", "structure") if graph.get(key) is not None}
    structure = matrix(template)[None] if edges else None
    weights = None if template.get("node_weights") is None else template.node_weights[None]
    found = ot.fgw(
        ot.GraphBatch(graph.x, node_weights=graph.get("node_weights"), **edges),
        ot.Templates(template.x[None], structure, weights),
        alpha,
        plans=None,
        **options,
    )
    return float(found.distances)


def renumbered(graph: Data, seed: int) -> Data:
    """The same graph with its nodes, and its edges, in another order."""
    rng = np.random.default_rng(seed)
    order = torch.from_numpy(rng.permutation(len(graph.x)))
    changed = Data(x=graph.x[order])
    if graph.get("node_weights") is not None:
        changed.node_weights = graph.node_weights[order]
    if graph.get("structure") is not None:
        changed.structure = matrix(graph)[order][:, order].flatten()
    elif graph.get("edge_index") is not None:
        edges = torch.from_numpy(rng.permutation(graph.edge_index.shape[1]))
        changed.edge_index = order.argsort()[graph.edge_index][:, edges]
        if graph.get("edge_weight") is not None:
            changed.edge_weight = graph.edge_weight[edges]
    return changed

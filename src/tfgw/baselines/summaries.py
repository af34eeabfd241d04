"""Vectors that summarise graphs without their structure."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data


def summaries(graphs: Sequence[Data]) -> Tensor:
    """Number of nodes, number of edges, sum of each feature: ``(num_graphs, 2 + num_features)``.

    Sums of one-hot labels or degrees are counts. An edge counts once, whether it is listed in one or both directions;
    self-loops are ignored.
    """
    return torch.stack([_summary(graph) for graph in graphs])


def _summary(graph: Data) -> Tensor:
    low, high = graph.edge_index.min(0).values, graph.edge_index.max(0).values
    edges = torch.unique(low[low < high] * len(graph.x) + high[low < high])
    return torch.cat([graph.x.new_tensor([len(graph.x), len(edges)]), graph.x.sum(0)])

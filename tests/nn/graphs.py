"""Small batches of graphs for the layers."""

import networkx as nx
import torch
from torch_geometric.data import Batch, Data

SIZES = (6, 3, 9, 1, 7)
CHANNELS = 4


def random_batch(seed: int = 0, sizes: tuple[int, ...] = SIZES, dtype: torch.dtype = torch.float64) -> Batch:
    """Connected graphs with continuous features (no ties)."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i, n in enumerate(sizes):
        graph = nx.random_labeled_tree(n, seed=seed + i)
        graph.add_edges_from(nx.gnp_random_graph(n, 0.2, seed=seed + i).edges)
        edges = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T
        x = torch.randn(n, CHANNELS, generator=generator, dtype=torch.float64).to(dtype)
        graphs.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=n))
    return Batch.from_data_list(graphs)


def random_structure(seed: int, count: int, nodes: int) -> torch.Tensor:
    """Symmetric matrices (count, nodes, nodes) with entries in (0, 1) and a zero diagonal."""
    upper = torch.rand(count, nodes, nodes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).triu(1)
    return upper + upper.mT

"""A dataset on which a tiny model learns something in a second."""

import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWConfig, TFGWModel

torch.set_num_threads(1)  # for tensors this small, threads only get in each other's way


def cycles_and_stars(count: int = 24, *, seed: int = 0) -> GraphDataset:
    """Cycles (class 0) and stars (class 1) of 4 to 7 nodes with 3 small random features."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        nodes = 4 + number % 4
        edges = [(i, (i + 1) % nodes) for i in range(nodes)] if number % 2 else [(0, i) for i in range(1, nodes)]
        both = torch.tensor(edges + [(b, a) for a, b in edges]).T
        x = 0.1 * torch.randn(nodes, 3, generator=generator)
        graphs.append(Data(x=x, edge_index=both, y=torch.tensor([number % 2])))
    return GraphDataset.from_graphs(graphs, name="small", classes=("star", "cycle"))


def regression_data(values: int) -> GraphDataset:
    """The same graphs with one or two values of their size to predict."""
    graphs = [graph.clone() for graph in cycles_and_stars()]
    for graph in graphs:
        size = float(graph.num_nodes)
        graph.y = torch.tensor([[size - 5, float(size > 5)][:values]])
    return GraphDataset.from_graphs(graphs, name="values")


def small_model(dataset: GraphDataset, *, layers: int = 1, dropout: float = 0.0, outputs: int = 2) -> TFGWModel:
    """The same weights at every call."""
    config = TFGWConfig(
        in_channels=3,
        out_channels=outputs,
        num_templates=2,
        template_nodes=5,
        num_layers=layers,
        width=4,
        dropout=dropout,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TFGWModel(config).init_templates(dataset, seed=0)


def same_weights(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Whether all tensors of two models are equal, bit for bit."""
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)

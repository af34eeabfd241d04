"""Small graphs with known answers, and estimators that learn them in a second."""

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from tfgw.estimators import TFGWClassifier

QUICK = {
    "num_templates": 4,
    "n_estimators": 1,
    "num_layers": 0,
    "epochs": 40,
    "batch_size": 32,
    "lr": 0.02,
    "accelerator": "cpu",
    "random_state": 0,
}

Tuples = list[tuple[np.ndarray, np.ndarray]]


def adjacency(graph: nx.Graph) -> np.ndarray:
    return nx.to_numpy_array(graph)


def rings_and_stars(count: int = 24, *, features: int = 3, seed: int = 0) -> tuple[Tuples, np.ndarray]:
    """Rings and stars of 4 to 7 nodes as (C, F), with their names; the features say nothing."""
    rng = np.random.default_rng(seed)
    graphs, names = [], []
    for number in range(count):
        nodes = 4 + number // 2 % 4
        graph = nx.cycle_graph(nodes) if number % 2 else nx.star_graph(nodes - 1)
        graphs.append((adjacency(graph), rng.normal(scale=0.1, size=(nodes, features))))
        names.append("ring" if number % 2 else "star")
    return graphs, np.array(names)


def as_data(graphs: Tuples) -> list[Data]:
    return [
        Data(x=torch.from_numpy(features), edge_index=torch.from_numpy(np.stack(np.nonzero(matrix))))
        for matrix, features in graphs
    ]


def as_networkx(graphs: Tuples) -> list[nx.Graph]:
    converted = []
    for matrix, features in graphs:
        graph = nx.Graph()  # not from_numpy_array: that gives every edge a weight
        graph.add_nodes_from((node, {"x": row}) for node, row in enumerate(features))
        graph.add_edges_from(np.argwhere(np.triu(matrix)).tolist())
        converted.append(graph)
    return converted


def fitted(**changes: object) -> TFGWClassifier:
    """A classifier of rings and stars."""
    return TFGWClassifier(**{**QUICK, "standardize": False, "alpha": 0.9, **changes}).fit(*rings_and_stars())

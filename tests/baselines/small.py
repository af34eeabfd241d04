"""Graphs with known classes, awkward ones among them, and settings with which each baseline learns them quickly."""

from typing import Any

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from tests.estimators.small import as_data, rings_and_stars
from tfgw.baselines import GIN, MLP, OTGNN, PPGN, WEGL, WL, WWL, DiffPool, DropGIN, FGWKernel, PatchySAN, RandomForest

TRAINED: dict[str, Any] = {
    "n_estimators": 1,
    "epochs": 40,
    "batch_size": 16,
    "accelerator": "cpu",
    "random_state": 0,
}

NEURAL: list[Any] = [
    GIN(**TRAINED, num_layers=2),
    DropGIN(**TRAINED, num_layers=2, width=16, drop_probability=0.1),
    MLP(**TRAINED),
    OTGNN(**TRAINED | {"epochs": 60}, num_templates=4),  # at 40, the score still depends on rounding
    PPGN(**TRAINED, width=16, lr=0.003, precision="float64"),
    DiffPool(**TRAINED, width=8),
    PatchySAN(**TRAINED, field_size=4),
]
CHOSEN: dict[str, Any] = {"random_state": 0, "inner_folds": 3, "C": (1.0, 100.0)}
CLASSICAL: list[Any] = [
    RandomForest(random_state=0, n_estimators=50),
    WEGL(random_state=0, num_layers=2, n_estimators=50),
    WL(**CHOSEN),
    WWL(**CHOSEN, gamma=(0.1, 10.0)),
    FGWKernel(**CHOSEN, gamma=(0.1, 10.0), alpha=(0.5, 0.9)),
]
ALL: list[Any] = [*NEURAL, *CLASSICAL]
BLIND: list[Any] = [model for model in ALL if isinstance(model, MLP | RandomForest)]
"""Those that do not see which node is linked to which."""
INVARIANT: list[Any] = [model for model in ALL if not isinstance(model, DropGIN)]
"""Those that promise not to depend on the order of a graph's nodes."""


def name_of(model: Any) -> str:
    return type(model).__name__


def labelled_graphs(count: int = 24, *, seed: int = 0) -> tuple[list[Data], np.ndarray]:
    """Rings and stars, whose nodes have one of three labels (one-hot) at random."""
    rng = np.random.default_rng(seed)
    graphs, names = rings_and_stars(count, seed=seed)
    one_hot = [(C, np.eye(3)[rng.integers(3, size=len(C))]) for C, _ in graphs]
    return as_data(one_hot), names


def awkward_graphs() -> list[Data]:
    """A single node, two of them without and with an edge, two components, isolated nodes, a large star."""
    shapes = [
        nx.empty_graph(1),
        nx.empty_graph(2),
        nx.path_graph(2),
        nx.disjoint_union(nx.cycle_graph(4), nx.path_graph(3)),
        nx.disjoint_union(nx.cycle_graph(3), nx.empty_graph(5)),
        nx.star_graph(40),
    ]
    return as_data([(nx.to_numpy_array(shape), np.eye(3)[np.arange(len(shape)) % 3]) for shape in shapes])


def permuted(graph: Data, rng: np.random.Generator) -> Data:
    """The same graph with its nodes and edges in another order."""
    order = torch.from_numpy(rng.permutation(graph.num_nodes))
    edges = torch.from_numpy(rng.permutation(graph.num_edges))
    copy = Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index][:, edges])
    if graph.get("edge_attr") is not None:
        copy.edge_attr = graph.edge_attr[edges]
    return copy

"""A dataset from a list of PyTorch Geometric graphs."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets.edge_sets import distinct_edges
from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features
from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_encoding import NodeEncoding
from tfgw.datasets.targets import as_targets

Graphs = GraphDataset | Sequence[Data]
"""A dataset, or a list of PyTorch Geometric graphs."""


def from_data_list(
    graphs: Sequence[Data],
    *,
    name: str = "graphs",
    features: Features = "auto",
    max_degree: int = DEFAULT_MAX_DEGREE,
    encoding: NodeEncoding | None = None,
) -> GraphDataset:
    """Create a dataset from a list or dataset of PyTorch Geometric graphs. Other attributes are kept.

    Edges without ``edge_weight`` are a set: self-loops and duplicate edges are dropped. ``x`` is treated as node
    attributes, so ``features="auto"`` keeps it, or uses one-hot degrees if there is no ``x``. An integer ``y`` is a
    class label of any value, and a floating-point ``y`` is a regression target; ``y`` is optional. ``encoding`` is an
    existing encoding to apply, such as that of a model; ``features`` and ``max_degree`` are then ignored.
    """
    if isinstance(graphs, Data):
        raise ValueError("graphs: expected a list of graphs, got one graph; put it in a list: [graph]")
    graphs = list(graphs)
    if not graphs:
        raise ValueError("the list of graphs is empty")
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise ValueError(f"graph {number}: expected a torch_geometric.data.Data, got {type(graph).__name__}")
        _check_edges(graph, number=number)
    graphs = [_with_distinct_edges(graph) for graph in graphs]
    tables = _as_tables(graphs)
    encoding = encoding or NodeEncoding.fit(tables, features=features, max_degree=max_degree)
    x = encoding.encode(tables).x.split(tables.node_counts.tolist())
    targets = as_targets(_stack_targets(graphs))
    complete = []
    for number, graph in enumerate(graphs):
        graph = copy.copy(graph)
        graph.x = x[number]
        if targets.y is not None:
            graph.y = targets.y[number : number + 1]
        complete.append(graph)
    return GraphDataset.from_graphs(complete, name=name, classes=targets.classes, encoding=encoding)


def _with_distinct_edges(graph: Data) -> Data:
    kept = None
    if graph.get("edge_weight") is None:
        kept = distinct_edges(graph.edge_index.cpu().numpy(), graph.num_nodes)
    if kept is None:
        return graph
    edge_keys = [key for key, value in graph if isinstance(value, Tensor) and _is_of_edges(graph, key)]
    chosen, graph = torch.from_numpy(kept).to(graph.edge_index.device), copy.copy(graph)
    for key in edge_keys:
        graph[key] = graph[key].index_select(1 if key == "edge_index" else 0, chosen)
    return graph


def _is_of_edges(graph: Data, key: str) -> bool:
    """Whether an attribute has a value per edge. PyTorch Geometric decides by length, which may be a coincidence."""
    is_certain = "edge" in key or (graph.num_edges > 1 and key not in ("x", "y"))
    return is_certain and graph.is_edge_attr(key)


def as_graph_dataset(graphs: Graphs, *, encoding: NodeEncoding | None = None) -> GraphDataset:
    """Return a dataset unchanged, or convert a list of graphs to a dataset.

    Features of listed graphs are kept, and their ``encoding`` is unknown (``None``). Graphs without features are
    encoded by the given ``encoding`` (default: one-hot degrees).
    """
    if isinstance(graphs, GraphDataset):
        return graphs
    if isinstance(graphs, Data) or not hasattr(graphs, "__len__") or not hasattr(graphs, "__getitem__"):
        found = "one graph; put it in a list: [graph]" if isinstance(graphs, Data) else type(graphs).__name__
        raise ValueError(f"graphs: expected a dataset or a list of graphs, got {found}")
    has_features = any(isinstance(graph, Data) and graph.x is not None for graph in graphs)
    dataset = from_data_list(graphs, encoding=None if has_features else encoding)
    if has_features:
        dataset.encoding = None
    return dataset


def _as_tables(graphs: Sequence[Data]) -> GraphTables:
    return GraphTables(
        node_counts=np.array([graph.num_nodes for graph in graphs]),
        edge_counts=np.array([graph.num_edges for graph in graphs]),
        edges=torch.cat([graph.edge_index for graph in graphs], dim=1).cpu().numpy(),
        node_attributes=_stack_features(graphs),
    )


def _stack_features(graphs: Sequence[Data]) -> np.ndarray | None:
    if all(graph.x is None for graph in graphs):
        return None
    parts: list[Tensor] = []
    for number, graph in enumerate(graphs):
        if graph.x is None:
            raise ValueError(f"graph {number}: no x, but other graphs have one")
        x = graph.x.detach().cpu()
        x = x[:, None] if x.dim() == 1 else x
        if parts and x.shape[1] != parts[0].shape[1]:
            raise ValueError(f"graph {number}: x has {x.shape[1]} columns, but that of graph 0 has {parts[0].shape[1]}")
        if not x.isfinite().all():
            raise ValueError(f"graph {number}: x has a value that is not finite")
        parts.append(x)
    return torch.cat(parts).numpy()


def _stack_targets(graphs: Sequence[Data]) -> np.ndarray | None:
    if all(graph.y is None for graph in graphs):
        return None
    rows: list[Tensor] = []
    for number, graph in enumerate(graphs):
        if graph.y is None:
            raise ValueError(f"graph {number}: no y, but other graphs have one")
        row = torch.as_tensor(graph.y).detach().cpu().flatten()
        if rows and row.shape != rows[0].shape:
            raise ValueError(f"graph {number}: y has {len(row)} values, but that of graph 0 has {len(rows[0])}")
        rows.append(row)
    stacked = torch.stack(rows).numpy()
    return stacked[:, 0] if stacked.shape[1] == 1 else stacked


def _check_edges(graph: Data, *, number: int) -> None:
    if not graph.num_nodes:
        raise ValueError(f"graph {number}: no nodes")
    edges = graph.edge_index
    if edges is None or edges.dim() != 2 or len(edges) != 2 or edges.dtype != torch.long:
        raise ValueError(f"graph {number}: edge_index must be an int64 tensor of shape (2, edges)")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= graph.num_nodes):
        raise ValueError(f"graph {number}: edge_index points to a node outside 0 to {graph.num_nodes - 1}")

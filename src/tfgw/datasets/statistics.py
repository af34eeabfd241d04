"""Statistics of a dataset: those of the paper's table, and a few more."""

from typing import NamedTuple

import numpy as np
from torch_geometric.data import Data

from tfgw.datasets.from_data import Graphs, as_graph_dataset
from tfgw.datasets.graph_dataset import GraphDataset


class Statistics(NamedTuple):
    """``class_counts`` is in the order of ``dataset.classes``; an edge listed in both directions counts once."""

    name: str
    graphs: int
    classes: int
    class_counts: tuple[int, ...]
    mean_nodes: float
    min_nodes: int
    max_nodes: int
    median_nodes: float
    mean_edges: float
    features: int
    disconnected: int


def statistics(dataset: Graphs) -> Statistics:
    """Compute the statistics of the selected graphs of a dataset, or of a list of graphs."""
    dataset = as_graph_dataset(dataset)
    nodes = np.array([graph.num_nodes for graph in dataset])
    return Statistics(
        name=dataset.name,
        graphs=len(dataset),
        classes=dataset.num_classes,
        class_counts=_class_counts(dataset),
        mean_nodes=float(nodes.mean()),
        min_nodes=int(nodes.min()),
        max_nodes=int(nodes.max()),
        median_nodes=float(np.median(nodes)),
        mean_edges=float(np.mean([_count_edges(graph) for graph in dataset])),
        features=dataset.num_node_features,
        disconnected=sum(not _is_connected(graph) for graph in dataset),
    )


def median_nodes(graphs: Graphs) -> int:
    """Return the median number of nodes; for an even number of graphs, the larger of the two middle values."""
    sizes = as_graph_dataset(graphs).node_counts.sort().values
    return int(sizes[len(sizes) // 2])


def _class_counts(dataset: GraphDataset) -> tuple[int, ...]:
    if dataset.y is None or not dataset.classes:
        return ()
    return tuple(dataset.y.bincount(minlength=dataset.num_classes).tolist())


def _count_edges(graph: Data) -> int:
    source, target = graph.edge_index
    pair = source.minimum(target) * graph.num_nodes + source.maximum(target)
    return int(pair.unique().numel())


def _is_connected(graph: Data) -> bool:
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    source, target = graph.edge_index.int().numpy()  # the oldest supported SciPy requires 32-bit indices
    adjacency = coo_array((np.ones(len(source)), (source, target)), shape=(graph.num_nodes, graph.num_nodes))
    return int(connected_components(adjacency, directed=True, connection="weak", return_labels=False)) == 1

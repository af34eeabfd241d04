"""Which graphs of a dataset are the same graph, node features included."""

from collections import defaultdict
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset


def isomorphism_groups(dataset: GraphDataset) -> np.ndarray:
    """The same number for graphs that are isomorphic with equal node features, ``(num_graphs,)``."""
    import networkx as nx

    graphs = [_with_features(graph) for graph in dataset]
    alike: dict[str, list[int]] = defaultdict(list)  # graphs of one hash may be isomorphic, others are not
    groups = np.empty(len(graphs), dtype=int)
    for number, graph in enumerate(graphs):
        candidates = alike[nx.weisfeiler_lehman_graph_hash(graph, node_attr="features")]
        same = (other for other in candidates if nx.is_isomorphic(graph, graphs[other], node_match=_match))
        first = next(same, number)
        groups[number] = first
        if first == number:
            candidates.append(number)
    return groups


def _with_features(data: Data) -> Any:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from((node, {"features": row.tobytes().hex()}) for node, row in enumerate(data.x.numpy()))
    graph.add_edges_from(data.edge_index.T.tolist())
    return graph


def _match(one: dict[str, str], other: dict[str, str]) -> bool:
    return one["features"] == other["features"]

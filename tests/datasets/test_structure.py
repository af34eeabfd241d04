import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from tfgw.datasets import ShortestPaths, from_networkx, shortest_paths


def by_networkx(graph: nx.Graph, *, weight: str | None = None) -> torch.Tensor:
    """The same distances from networkx, with the documented rule where there is no path."""
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight=weight))
    nodes = list(graph)
    distances = torch.tensor([[lengths[a].get(b, float("inf")) for b in nodes] for a in nodes]).float()
    distances[distances.isinf()] = distances[~distances.isinf()].max() + 1
    return distances


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(6),
        nx.petersen_graph(),
        nx.gnp_random_graph(17, 0.1, seed=1),  # disconnected
        nx.gnp_random_graph(13, 0.15, seed=2, directed=True),
        nx.empty_graph(3),
        nx.empty_graph(1),
    ],
)
def test_hops_agree_with_networkx(graph: nx.Graph) -> None:
    data = from_networkx([graph])[0]
    torch.testing.assert_close(shortest_paths(data.edge_index, data.num_nodes), by_networkx(graph))


def test_rule_for_disconnected_graphs() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # the path 0–1–2 and an isolated node
    expected = torch.tensor([[0.0, 1, 2, 3], [1, 0, 1, 3], [2, 1, 0, 3], [3, 3, 3, 0]])
    torch.testing.assert_close(shortest_paths(edges, 4), expected)


def test_weights_agree_with_networkx() -> None:
    rng = np.random.default_rng(0)
    graph = nx.gnp_random_graph(15, 0.2, seed=3)
    nx.set_edge_attributes(graph, {edge: float(rng.integers(0, 9)) / 4 for edge in graph.edges}, "w")
    data = from_networkx([graph], weight="w")[0]
    distances = shortest_paths(data.edge_index, data.num_nodes, edge_weight=data.edge_weight)
    torch.testing.assert_close(distances, by_networkx(graph, weight="w"))


def test_edges_of_length_zero_and_parallel_edges() -> None:
    edges = torch.tensor([[0, 0, 1, 1, 1, 2], [1, 1, 0, 0, 2, 1]])
    weights = torch.tensor([5.0, 2.0, 2.0, 5.0, 0.0, 0.0])
    expected = torch.tensor([[0.0, 2, 2], [2, 0, 0], [2, 0, 0]])
    torch.testing.assert_close(shortest_paths(edges, 3, edge_weight=weights), expected)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_without_meaning_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="edge weights must be finite and non-negative"):
        shortest_paths(torch.tensor([[0], [1]]), 2, edge_weight=torch.tensor([weight]))


def test_transform_stores_blocks_that_a_batch_puts_end_to_end() -> None:
    dataset = from_networkx([nx.path_graph(3), nx.cycle_graph(5)], y=[0, 1]).map(ShortestPaths())
    batch = Batch.from_data_list(list(dataset))
    assert batch.structure.shape == (3**2 + 5**2,)
    torch.testing.assert_close(batch.structure[:9].reshape(3, 3), by_networkx(nx.path_graph(3)))
    torch.testing.assert_close(batch.structure[9:].reshape(5, 5), by_networkx(nx.cycle_graph(5)))


def test_transform_respects_weights_and_leaves_its_input_alone() -> None:
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([2.5, 2.5]))
    assert ShortestPaths()(data).structure.tolist() == [0, 2.5, 2.5, 0]
    assert "structure" not in data

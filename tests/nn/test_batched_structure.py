import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import from_networkx

from tfgw.nn.batched_structure import batched_shortest_paths, entry_index

GRAPHS = [nx.path_graph(5), nx.cycle_graph(7), nx.star_graph(3), nx.empty_graph(1), nx.petersen_graph()]


def batch_of(graphs: list[nx.Graph]) -> Batch:
    data = [from_networkx(graph) for graph in graphs]
    for d, graph in zip(data, graphs, strict=True):
        d.num_nodes = len(graph)
        d.edge_index = d.edge_index.reshape(2, -1).long()
    return Batch.from_data_list(data)


def test_shortest_paths_of_a_batch_follow_one_another() -> None:
    batch = batch_of(GRAPHS)
    blocks = [torch.from_numpy(np.asarray(nx.floyd_warshall_numpy(graph))).flatten() for graph in GRAPHS]
    found = batched_shortest_paths(batch.edge_index, batch.num_nodes, batch.batch)
    torch.testing.assert_close(found.double(), torch.cat(blocks))


def test_order_of_the_edges_does_not_matter() -> None:
    batch = batch_of(GRAPHS)
    order = torch.randperm(batch.num_edges, generator=torch.Generator().manual_seed(0))
    weight = 0.5 + torch.rand(batch.num_edges, generator=torch.Generator().manual_seed(1))
    one = batched_shortest_paths(batch.edge_index, batch.num_nodes, batch.batch, weight)
    other = batched_shortest_paths(batch.edge_index[:, order], batch.num_nodes, batch.batch, weight[order])
    assert torch.equal(one, other)


def test_one_graph_needs_no_batch() -> None:
    data = batch_of(GRAPHS[:1])
    assert torch.equal(
        batched_shortest_paths(data.edge_index, 5), batched_shortest_paths(data.edge_index, 5, data.batch)
    )


@pytest.mark.parametrize(
    ("directed", "diagonal", "free"),
    [(False, False, 6), (False, True, 10), (True, False, 12), (True, True, 16)],
)
def test_every_free_entry_has_its_place(directed: bool, diagonal: bool, free: int) -> None:
    index = entry_index(4, directed=directed, diagonal=diagonal)
    off_diagonal = index[~torch.eye(4, dtype=torch.bool)]
    assert sorted(set(index.flatten().tolist()) - {free}) == list(range(free))
    assert bool((off_diagonal < free).all())
    assert bool((index.diagonal() < free).all()) is diagonal
    assert torch.equal(index, index.T) is not directed


def test_one_node_has_no_free_entries() -> None:
    assert entry_index(1, directed=False, diagonal=False).tolist() == [[0]]
    assert entry_index(1, directed=False, diagonal=True).tolist() == [[0]]

"""DIFFPOOL: padding does not matter, and the auxiliary losses are trained on."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.baselines.small import awkward_graphs, labelled_graphs
from tfgw.baselines import DiffPool
from tfgw.baselines.diffpool import DiffPoolModel


def test_one_graph_at_a_time_is_the_batch() -> None:
    graphs = awkward_graphs()
    network = DiffPoolModel(3, 2, max_nodes=41, num_pools=2, width=5).double().eval()
    batch = Batch.from_data_list(graphs)
    together = network(batch.x, batch.edge_index, batch.batch, batch_size=len(graphs))
    alone = torch.cat([network(graph.x, graph.edge_index) for graph in graphs])
    torch.testing.assert_close(together, alone)


def test_statistics_of_batches_ignore_padding() -> None:
    small, large = awkward_graphs()[3], awkward_graphs()[5]
    network = DiffPoolModel(3, 2, max_nodes=41, width=5).double()
    batch = Batch.from_data_list([small, large])
    network(batch.x, batch.edge_index, batch.batch)
    conv = network.embeddings[0].convs[0]
    mean = torch.cat([conv(graph.x, _dense(graph))[0] for graph in (small, large)]).mean(0).detach()
    torch.testing.assert_close(network.embeddings[0].norms[0].running_mean, 0.1 * mean)


@pytest.mark.parametrize(("num_pools", "clusters"), [(1, [11]), (2, [11, 3])])
def test_clusters_of_each_level(num_pools: int, clusters: list[int]) -> None:
    network = DiffPoolModel(3, 2, max_nodes=41, num_pools=num_pools, ratio=0.25)
    assert [assignment.last.out_features for assignment in network.assignments] == clusters


def test_auxiliary_loss_of_a_single_cluster() -> None:
    """With one cluster the entropy is 0, and S Sᵀ is 1 everywhere: what is left is its distance to the adjacency."""
    graph = awkward_graphs()[3]
    network = DiffPoolModel(3, 2, max_nodes=7, ratio=0.1, width=5).double().eval()
    network(graph.x, graph.edge_index)
    expected = (1 - _dense(graph)).norm() / 49
    torch.testing.assert_close(network.auxiliary_loss, expected)


def test_errors() -> None:
    graphs, names = labelled_graphs(8)
    with pytest.raises(ValueError, match="ratio: must be positive and at most 1"):
        DiffPool(ratio=0.0).fit(graphs, names)
    with pytest.raises(ValueError, match="num_pools: must be at least 1"):
        DiffPool(num_pools=0).fit(graphs, names)


def _dense(graph: Data) -> torch.Tensor:
    adjacency = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    return adjacency

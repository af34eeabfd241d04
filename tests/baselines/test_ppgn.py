"""PPGN: stronger than message passing, the same in parts as in one piece, whatever the padding."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.baselines.small import awkward_graphs
from tfgw.baselines import PPGN, ppgn
from tfgw.baselines.ppgn import PPGNModel, largest
from tfgw.nn import GINModel


def model(in_channels: int = 3) -> PPGNModel:
    torch.manual_seed(0)
    return PPGNModel(in_channels, 2, num_blocks=3, width=6, depth=2).double()


def test_one_graph_at_a_time_is_the_batch() -> None:
    graphs, network = awkward_graphs(), model()
    batch = Batch.from_data_list(graphs)
    together = network(batch.x, batch.edge_index, batch.batch, batch_size=len(graphs))
    alone = torch.cat([network(graph.x, graph.edge_index) for graph in graphs])
    torch.testing.assert_close(together, alone)


def test_parts_give_the_same_scores_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, whole, parts = Batch.from_data_list(awkward_graphs()), model(), model()
    expected = whole(batch.x, batch.edge_index, batch.batch)
    expected.square().sum().backward()
    monkeypatch.setattr(ppgn, "VALUES", 100)  # each graph alone, the larger ones block by block
    assert len(list(parts._parts(batch.batch.bincount()))) == len(awkward_graphs()) - 2
    actual = parts(batch.x, batch.edge_index, batch.batch)
    actual.square().sum().backward()
    torch.testing.assert_close(actual, expected)
    for ours, theirs in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_tells_apart_what_message_passing_cannot() -> None:
    ring, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    edges = [torch.from_numpy(np.stack(np.nonzero(nx.to_numpy_array(graph)))) for graph in (ring, triangles)]
    x = torch.ones(6, 1, dtype=torch.float64)
    gin = GINModel(1, 2).double().eval()
    torch.testing.assert_close(gin(x, edges[0]), gin(x, edges[1]))
    network = model(1)
    assert (network(x, edges[0]) - network(x, edges[1])).abs().max() > 1e-4


def test_largest_values_by_hand() -> None:
    features = torch.tensor([[[[-1.0, 7.0], [2.0, -3.0]]], [[[-5.0, 9.0], [9.0, 9.0]]]])
    mask = torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]], [[[1.0, 0.0], [0.0, 0.0]]]])
    torch.testing.assert_close(largest(features, mask), torch.tensor([[-1.0, 7.0], [-5.0, 0.0]]))


def test_parameters_by_hand() -> None:
    """Blocks of 4, then 6 features: two perceptrons of two layers, the skip map; a readout each."""
    perceptrons = [2 * ((size * 6 + 6) + (6 * 6 + 6)) for size in (4, 6, 6)]
    skips = [(size + 6) * 6 + 6 for size in (4, 6, 6)]
    assert sum(p.numel() for p in model().parameters()) == sum(perceptrons) + sum(skips) + 3 * (12 * 2 + 2)


def test_errors() -> None:
    with pytest.raises(ValueError, match="width: must be at least 1"):
        PPGN(width=0).fit([Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64))] * 2, [0, 1])

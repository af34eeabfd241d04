"""PATCHY-SAN: receptive fields by hand, independent of how nodes are numbered."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.baselines.small import awkward_graphs, labelled_graphs, permuted
from tfgw.baselines import PatchySAN
from tfgw.baselines.receptive_fields import receptive_fields


def path_of_five() -> Data:
    """Nodes 0–1–2–3–4 with their numbers plus one as features; betweenness 0, 3, 4, 3, 0."""
    edges = torch.from_numpy(np.stack(np.nonzero(nx.to_numpy_array(nx.path_graph(5)))))
    weights = (edges[0] + edges[1]).double()[:, None]
    return Data(x=torch.arange(1.0, 6.0, dtype=torch.float64)[:, None], edge_index=edges, edge_attr=weights)


def test_fields_by_hand() -> None:
    fields = receptive_fields(path_of_five(), num_fields=3, field_size=4, edge_channels=False)
    assert fields.shape == (3, 4)
    assert fields[0, 0] == 3  # the middle, then its neighbours (equally central), then an end
    assert sorted(fields[0, 1:3].tolist()) == [2, 4]
    roots = sorted(fields[1:, 0].tolist())
    assert roots == [2, 4]
    for row in fields[1:].tolist():
        # From an inner node: the middle is more central than the end beside it, and the other inner node is farther.
        assert row == ([2, 3, 1, 4] if row[0] == 2 else [4, 3, 5, 2])


def test_small_graphs_are_padded() -> None:
    fields = receptive_fields(path_of_five(), num_fields=7, field_size=6, edge_channels=False)
    assert (fields[:5, :5] > 0).all()
    assert (fields[5:] == 0).all()
    assert (fields[:, 5] == 0).all()


def test_edge_channels_by_hand() -> None:
    rows = receptive_fields(path_of_five(), num_fields=1, field_size=3, edge_channels=True)
    nodes, edges = rows[0, :3].tolist(), rows[0, 3:].reshape(3, 3)
    assert nodes[0] == 3
    expected = torch.tensor([[0, nodes[0] + nodes[1] - 2, nodes[0] + nodes[2] - 2], [0, 0, 0], [0, 0, 0]])
    torch.testing.assert_close(edges, (expected + expected.T).double())


@pytest.mark.parametrize("edge_channels", [False, True])
def test_fields_do_not_depend_on_the_numbers_of_nodes(edge_channels: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for graph in [*awkward_graphs(), *labelled_graphs(8)[0], path_of_five()]:
        settings = {"num_fields": 6, "field_size": 4, "edge_channels": edge_channels}
        expected = receptive_fields(graph, **settings)
        for _ in range(3):
            torch.testing.assert_close(receptive_fields(permuted(graph, rng), **settings), expected)


def test_parameters_by_hand() -> None:
    graphs, names = labelled_graphs(16)
    mean = round(sum(graph.num_nodes for graph in graphs) / 16)
    model = PatchySAN(field_size=4, edge_channels=True, n_estimators=1, epochs=1, accelerator="cpu").fit(graphs, names)
    assert model.num_fields_ == mean
    convolutions = (4 * 3 * 16 + 16) + (4 * 4 * 16 + 16) + (32 * mean * 8 + 8)  # the kernel is as long as the sequence
    assert model.num_parameters_ == convolutions + (8 * 128 + 128) + (128 * 2 + 2)


def test_edge_features_are_read() -> None:
    """Two kinds of rings that differ in the features of their edges alone."""
    graphs, y = [], np.arange(16) % 2
    for number in range(16):
        edges = torch.from_numpy(np.stack(np.nonzero(nx.to_numpy_array(nx.cycle_graph(5 + number % 3)))))
        kind = torch.full((edges.shape[1],), float(y[number]))
        graphs.append(Data(x=torch.ones(5 + number % 3, 1), edge_index=edges, edge_attr=kind))
    settings = {"field_size": 3, "epochs": 30, "batch_size": 8, "accelerator": "cpu", "random_state": 0}
    assert PatchySAN(**settings, edge_channels=True).fit(graphs, y).score(graphs, y) == 1.0
    assert PatchySAN(**settings).fit(graphs, y).score(graphs, y) == 0.5
    graphs[2].edge_attr = graphs[2].edge_attr[:-1]
    with pytest.raises(ValueError, match="graph 2: edge_attr must have one row for each of 14 edges"):
        PatchySAN(**settings, edge_channels=True).fit(graphs, y)


def test_errors() -> None:
    graphs, names = labelled_graphs(8)
    with pytest.raises(ValueError, match="field_size: must be at least 1"):
        PatchySAN(field_size=0).fit(graphs, names)
    with pytest.raises(ValueError, match="dropout: must be at least 0 and less than 1"):
        PatchySAN(dropout=1.0).fit(graphs, names)

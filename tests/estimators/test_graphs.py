"""Lists of graphs of all kinds become the same graphs, or an error that names the graph."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.estimators.small import adjacency, as_data, as_networkx, rings_and_stars
from tfgw.estimators import as_graphs

PATH = adjacency(nx.path_graph(3))
F = np.arange(6.0).reshape(3, 2)
WEIGHTED = PATH * np.array([[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])


def test_all_kinds_give_the_same_graphs() -> None:
    graphs, _ = rings_and_stars(6)
    tensors = [(torch.from_numpy(C).bool(), torch.from_numpy(F).float()) for C, F in graphs]
    objects = np.empty(6, dtype=object)
    objects[:] = as_data(graphs)
    expected = as_graphs(graphs)
    for kind in (as_data(graphs), as_networkx(graphs), tensors, objects, tuple(graphs)):
        for a, b in zip(as_graphs(kind), expected, strict=True):
            assert set(a.keys()) == set(b.keys()) == {"x", "edge_index"}
            torch.testing.assert_close(a.x, b.x, rtol=1e-6, atol=1e-6)
            assert torch.equal(a.edge_index, b.edge_index)
            assert a.x.dtype == torch.float64


def test_weights_of_one_graph_are_given_to_all() -> None:
    h = np.array([0.5, 0.25, 0.25])
    weighted, plain = as_graphs([(WEIGHTED, F, h), (PATH, F)])
    assert weighted.edge_weight.tolist() == [2, 2, 0.5, 0.5]
    assert plain.edge_weight.tolist() == [1, 1, 1, 1]
    assert weighted.node_weights.tolist() == h.tolist()
    assert plain.node_weights.tolist() == [1 / 3] * 3


def test_networkx_weights_and_self_loops() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 0.5), ("c", "c", 7.0)])
    (converted,) = as_graphs([graph])
    assert torch.equal(converted.edge_index, as_graphs([(WEIGHTED, None)])[0].edge_index)
    assert converted.edge_weight.tolist() == [2, 2, 0.5, 0.5]
    assert converted.x.shape == (3, 0)


def test_precomputed_keeps_the_matrix() -> None:
    C = np.array([[1.0, -2.0], [-2.0, 0.0]])
    x = torch.ones(2, 1)
    flat = Data(x=x, structure=torch.from_numpy(C).flatten())
    for graph in ((C, np.ones((2, 1))), flat, Data(x=x, structure=torch.from_numpy(C))):
        (converted,) = as_graphs([graph], structure="precomputed")
        assert converted.structure.tolist() == [1, -2, -2, 0]
        assert converted.edge_index.tolist() == [[0, 1], [1, 0]]
        assert "edge_weight" not in converted


def test_input_is_left_alone() -> None:
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), node_weights=torch.tensor([0.25, 0.75]))
    before = data.clone()
    (converted,) = as_graphs([data])
    converted.x += 1
    converted.node_weights += 1
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.node_weights, before.node_weights)


def test_directed() -> None:
    graph = nx.DiGraph([(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="graph 0: the structure is not symmetric; use directed=True"):
        as_graphs([graph])
    assert as_graphs([graph], directed=True)[0].edge_index.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (F, "expected a Data, a networkx graph, or a tuple .*got ndarray"),
        ((PATH,), "got a tuple of 1"),
        (nx.path_graph(3), "a networkx graph, but graph 0 is a tuple"),
        ((F, F), r"C: expected a square matrix, got shape \(3, 2\)"),
        ((PATH, F[:2]), r"F: expected one row for each of 3 nodes, got shape \(2, 2\)"),
        ((PATH, F[:, :1]), "1 features per node, but graph 0 has 2 features per node"),
        ((PATH, None), "no features, but graph 0 has 2 features per node"),
        ((PATH, F * np.nan), "F: contains a value that is not finite"),
        ((np.full((3, 3), np.inf), F), "C: contains a value that is not finite"),
        ((PATH, F.astype(complex)), "F: expected an array of numbers"),
        ((PATH, [["a", "b"]] * 3), "F: expected an array of numbers"),
        ((PATH, F, [0.5, 0.5]), "node weights: 2 weights for 3 nodes"),
        ((PATH, F, [0.5, 0.6, -0.1]), "node weights: must be non-negative and sum to 1"),
        ((PATH, F, [1, 1, 1]), "node weights: must be non-negative and sum to 1"),
        ((PATH + np.eye(3), F), "C: an adjacency matrix must have a zero diagonal"),
        ((np.triu(PATH), F), "the structure is not symmetric"),
        ((np.zeros((0, 0)), np.zeros((0, 2))), "no nodes"),
    ],
)
def test_errors_name_the_graph(graph: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"graph 1: .*{message}"):
        as_graphs([(PATH, F), graph])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Data(), "no nodes"),
        (Data(x=torch.ones(3, 2)), "edge_index: must be an int64 tensor"),
        (Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 3], [3, 0]])), "contains a node outside 0 to 2"),
        (Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]])), "the structure is not symmetric"),
        (
            Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.ones(3)),
            "edge_weight: has 3 weights for 2 edges",
        ),
    ],
)
def test_errors_in_data(graph: Data, message: str) -> None:
    good = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match=f"graph 1: .*{message}"):
        as_graphs([good, graph])


def test_errors_in_networkx() -> None:
    partly = nx.path_graph(3)
    partly.nodes[0]["x"] = 1.0
    with pytest.raises(ValueError, match="graph 0: node 1 has no attribute 'x'"):
        as_graphs([partly])
    with pytest.raises(ValueError, match="graph 1: parallel edges"):
        as_graphs([nx.path_graph(3), nx.MultiGraph([(0, 1)])])
    uneven = nx.path_graph(2)
    uneven.nodes[0]["x"], uneven.nodes[1]["x"] = [1.0], [1.0, 2.0]
    with pytest.raises(ValueError, match="graph 0: x: expected an array of numbers"):
        as_graphs([uneven])


def test_errors_of_structures() -> None:
    with pytest.raises(ValueError, match="graph 0: edge_weight: shortest paths require non-negative weights"):
        as_graphs([(-PATH, F)], structure="shortest_path")
    with pytest.raises(ValueError, match="graph 0: structure: required"):
        as_graphs(as_data([(PATH, F)]), structure="precomputed")
    with pytest.raises(ValueError, match=r"graph 0: .*got a networkx graph"):
        as_graphs([nx.path_graph(2)], structure="precomputed")
    with pytest.raises(ValueError, match="structure: must be one of"):
        as_graphs([(PATH, F)], structure="heat")


@pytest.mark.parametrize("X", [Data(), F, torch.ones(3, 2), "graphs", 3, None, iter([])])
def test_no_list_of_graphs(X: Any) -> None:
    with pytest.raises(ValueError, match="X: expected a list of graphs"):
        as_graphs(X)


def test_empty_list() -> None:
    with pytest.raises(ValueError, match="X: the list of graphs is empty"):
        as_graphs([])

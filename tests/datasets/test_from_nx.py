import re

import networkx as nx
import pytest
import torch
from torch_geometric.utils import to_networkx

from tfgw.datasets import from_networkx


def test_undirected_round_trip() -> None:
    graphs = [nx.path_graph(3), nx.cycle_graph(5), nx.star_graph(6)]
    dataset = from_networkx(graphs, y=["b", "a", "b"])
    assert (dataset.classes, dataset.y.tolist()) == (("a", "b"), [1, 0, 1])
    for given, kept in zip(graphs, dataset, strict=True):
        assert nx.utils.graphs_equal(nx.Graph(given.edges), nx.Graph(to_networkx(kept, to_undirected=True).edges))


def test_directed_edges_keep_their_direction() -> None:
    graph = nx.DiGraph([(2, 0), (0, 1)])  # nodes are numbered in the order of the graph: 2, 0, 1
    assert from_networkx([graph], y=[0])[0].edge_index.tolist() == [[0, 1], [1, 2]]


def test_self_loops_are_dropped_and_isolated_nodes_kept() -> None:
    graph = nx.Graph([("a", "b"), ("b", "b")])
    graph.add_node("c")
    data = from_networkx([graph])[0]
    assert data.num_nodes == 3
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_graph_without_edges() -> None:
    assert from_networkx([nx.empty_graph(2), nx.empty_graph(3)])[1].edge_index.shape == (2, 0)


def test_node_attributes_labels_and_weights() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: [1.0, 2.0], 1: [3.0, 4.0], 2: [5.0, 6.0]}, "position")
    nx.set_node_attributes(graph, {0: "C", 1: "N", 2: "C"}, "atom")
    nx.set_edge_attributes(graph, {(0, 1): 0.5, (1, 2): 2}, "length")
    data = from_networkx([graph], node_attributes="position", weight="length")[0]
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2, 2]
    assert from_networkx([graph], node_labels="atom")[0].x.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_labels_of_several_types() -> None:
    graph = nx.empty_graph(3)
    nx.set_node_attributes(graph, {0: "C", 1: 7, 2: "C"}, "kind")
    x = from_networkx([graph], node_labels="kind")[0].x
    assert x[0].equal(x[2])
    assert not x[0].equal(x[1])


def test_targets_from_a_graph_attribute() -> None:
    graphs = [nx.path_graph(2, create_using=nx.Graph), nx.path_graph(4)]
    graphs[0].graph["energy"], graphs[1].graph["energy"] = 0.5, 1.5
    dataset = from_networkx(graphs, y="energy")
    torch.testing.assert_close(dataset.y, torch.tensor([0.5, 1.5]))
    with pytest.raises(ValueError, match="graph 0: no graph attribute 'mass'"):
        from_networkx(graphs, y="mass")


def test_default_features_are_degrees() -> None:
    assert from_networkx([nx.star_graph(3)])[0].x.argmax(dim=1).tolist() == [3, 1, 1, 1]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (nx.Graph(), {}, "graph 1: no nodes"),
        (nx.MultiGraph([(0, 1), (0, 1)]), {}, "graph 1: parallel edges are not supported"),
        (nx.path_graph(3), {"y": [0, 1, 2]}, "3 targets for 2 graphs"),
        (nx.path_graph(3), {"node_attributes": "p"}, "graph 1: node 0 has no attribute 'p'"),
        (nx.path_graph(3), {"weight": "w"}, "graph 1: the edge 0, 1 has no finite number as 'w'"),
    ],
)
def test_bad_graph_is_named(graph: nx.Graph, options: dict, message: str) -> None:
    good = nx.Graph()
    good.add_node(0, p=1.0)
    with pytest.raises(ValueError, match=re.escape(message)):
        from_networkx([good, graph], **options)


@pytest.mark.parametrize("value", ["text", [1.0, 2.0], float("inf")])
def test_bad_attribute_is_named(value: object) -> None:
    graph = nx.Graph()
    graph.add_node(0, p=1.0)
    graph.add_node(1, p=value)
    with pytest.raises(ValueError, match="node attribute 'p': "):
        from_networkx([graph], node_attributes="p")


def test_what_edges_carry() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", kind="single", length=[1.0, 2.0])
    graph.add_edge("c", "b", kind="double", length=[3.0, 4.0])
    graph.add_edge("a", "a", kind="loop", length=[0.0, 0.0])
    dataset = from_networkx([graph], edge_labels="kind", edge_attributes="length")
    assert dataset[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset.encoding.edges.vocabulary == (("double", "single"),)
    assert dataset[0].edge_attr.tolist() == [[1, 2, 0, 1], [1, 2, 0, 1], [3, 4, 1, 0], [3, 4, 1, 0]]
    del graph.edges["b", "c"]["kind"]
    with pytest.raises(ValueError, match=r"graph 0: the edge 'b', 'c' has no attribute 'kind'"):
        from_networkx([graph], edge_labels="kind")
    graph.edges["b", "c"]["length"] = [3.0, float("nan")]
    with pytest.raises(ValueError, match="edge attribute 'length': contains a value that is not finite"):
        from_networkx([graph], edge_attributes="length")

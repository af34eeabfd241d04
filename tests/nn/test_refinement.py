"""Refined node features: labels against networkx, averages by hand, distances between codes."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.baselines.small import awkward_graphs, labelled_graphs, permuted
from tfgw.nn.graph_distance import NodeDescription
from tfgw.nn.refinement import (
    averaged_degrees,
    averaged_features,
    label_codes,
    label_numbers,
    refined_labels,
    row_labels,
)


def test_refined_labels_separate_what_networkx_separates() -> None:
    graphs = [*awkward_graphs(), *labelled_graphs(8)[0]]
    ours, theirs = [], []
    for graph in graphs:
        nodes = nx.Graph()
        nodes.add_nodes_from((i, {"label": str(row.tolist())}) for i, row in enumerate(graph.x))
        nodes.add_edges_from(graph.edge_index.T.tolist())
        hashes = nx.weisfeiler_lehman_subgraph_hashes(nodes, node_attr="label", iterations=3)
        theirs += [hashes[i][-1] for i in range(graph.num_nodes)]
        ours += refined_labels(graph.x, graph.edge_index, 3)[:, -1].tolist()
    first_of = [np.unique(labels, return_inverse=True)[1] for labels in (np.array(ours), np.array(theirs))]
    pairs = set(zip(first_of[0].tolist(), first_of[1].tolist(), strict=True))
    assert len(pairs) == len(set(ours)) == len(set(theirs))


def test_refined_labels_do_not_depend_on_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for graph in awkward_graphs():
        other = permuted(graph, rng)
        same = refined_labels(other.x, other.edge_index, 4)
        assert sorted(same.tolist()) == sorted(refined_labels(graph.x, graph.edge_index, 4).tolist())
    assert len(set(row_labels(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])).tolist())) == 2


def test_averaged_features_by_hand() -> None:
    graph = Data(x=torch.tensor([[0.0], [4.0], [8.0], [5.0]]), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    expected = torch.tensor([[0.0, 2.0], [4.0, 4.0], [8.0, 6.0], [5.0, 5.0]], dtype=torch.float64)
    torch.testing.assert_close(averaged_features(graph.x, graph.edge_index, 1), expected)


def test_codes_of_labels_have_distance_zero_or_about_one() -> None:
    labels = torch.from_numpy(np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (300, 1)))
    distances = torch.cdist(label_codes(labels), label_codes(labels)).square()
    assert distances.diagonal().abs().max() < 1e-12
    others = distances[~torch.eye(300, dtype=torch.bool)]
    assert abs(others.mean() - 1) < 0.02
    assert 0.15 < others.std() < 0.2
    assert others.min() > 0.1


def test_labels_are_numbers_of_53_bits() -> None:
    labels = torch.tensor([[2**62 + 2**11, 2**62], [-(2**63), 2**63 - 1]])
    assert label_numbers(labels).tolist() == [[2**51 + 1, 2**51], [-(2**52), 2**52 - 1]]


def test_levels_have_equal_shares_in_the_cost() -> None:
    """Two nodes that differ in their neighbours only: 0 apart at level 0, 1/2 at level 1, 2/3 at level 2."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])  # 0–1 and 2–3, where 1 alone has the other label
    for level, expected in ((0, 0.0), (1, 1 / 2), (2, 2 / 3), (4, 4 / 5)):
        codes = NodeDescription("codes", level).features(x, edges)
        assert abs(float((codes[0] - codes[2]).square().sum()) - expected) < 0.25
        assert float((codes[2] - codes[3]).square().sum()) == 0
        labels = NodeDescription("labels", level).features(x, edges)
        assert float((labels[0] != labels[2]).double().mean()) == pytest.approx(expected)
        assert torch.equal(labels[2], labels[3])
    averaged = NodeDescription("averages", 1).features(x, edges)
    # x differs in nothing, the average (½, ½) from (1, 0) by ½ in both of two columns; two levels, two columns.
    assert abs(float((averaged[0] - averaged[2]).square().sum()) - 0.5 / 4) < 1e-12


def test_degrees_are_averaged_over_neighbours() -> None:
    """A path of three nodes and one alone: degrees 1, 2, 1, 0."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    one, two = np.log(2), np.log(3)
    expected = [[one, (one + two) / 2], [two, (one + two) / 2], [one, (one + two) / 2], [0, 0]]
    np.testing.assert_allclose(averaged_degrees(edges, 4, 1).numpy(), expected)
    assert averaged_degrees(edges, 4, 0).shape == (4, 1)


def test_degrees_do_not_depend_on_the_order_of_edges() -> None:
    """Unrounded sums over four and more neighbours differ in the last bits."""
    graph = nx.gnp_random_graph(40, 0.2, seed=0)
    rng, found = np.random.default_rng(0), []
    for _ in range(5):
        order = rng.permutation(40)
        pairs = rng.permutation([(order[a], order[b]) for a, b in graph.to_directed().edges])
        found.append(averaged_degrees(torch.from_numpy(pairs.T.copy()), 40, 3)[order])
    assert all(torch.equal(found[0], other) for other in found[1:])

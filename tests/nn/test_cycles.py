"""Shortest cycles through nodes, compared with all simple cycles of networkx."""

import networkx as nx
import numpy as np
import pytest
import torch

from tfgw.nn.cycles import LONGEST_CYCLE, shortest_cycles


def found(graph: nx.Graph) -> list[int]:
    edges = [*graph.edges, *((b, a) for a, b in graph.edges)]
    return shortest_cycles(torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T, len(graph)).tolist()


def expected(graph: nx.Graph) -> list[int]:
    lengths = dict.fromkeys(graph, 0)
    for cycle in sorted(nx.simple_cycles(graph, LONGEST_CYCLE), key=len):
        for node in cycle:
            lengths[node] = lengths[node] or len(cycle)
    return [lengths[node] for node in range(len(graph))]


@pytest.mark.parametrize("number", range(20))
def test_random_graphs(number: int) -> None:
    graph = nx.gnm_random_graph(17, 13 + number, seed=number)
    assert found(graph) == expected(graph)


@pytest.mark.parametrize("length", range(3, LONGEST_CYCLE + 3))
def test_cycles_with_a_tail(length: int) -> None:
    graph = nx.cycle_graph(length)
    nx.add_path(graph, [0, length, length + 1])
    assert found(graph) == [length if length <= LONGEST_CYCLE else 0] * length + [0, 0]


def test_each_node_has_the_shortest_of_its_cycles() -> None:
    graph = nx.cycle_graph(6)
    nx.add_cycle(graph, [0, 1, 6, 7, 8])  # shares an edge with the hexagon
    nx.add_path(graph, [4, 9, 10])
    nx.add_cycle(graph, [10, 11, 12])  # linked by a path, which is on no cycle
    assert found(graph) == [5, 5, 6, 6, 6, 6, 5, 5, 5, 0, 3, 3, 3]


def test_graphs_of_a_batch_and_interleaved_graphs() -> None:
    parts = [nx.cycle_graph(5), nx.empty_graph(1), nx.complete_graph(4), nx.path_graph(3), nx.cycle_graph(7)]
    union = nx.disjoint_union_all(parts)
    lengths = [5] * 5 + [0] + [3] * 4 + [0] * 3 + [7] * 7
    assert found(union) == lengths
    order = np.random.default_rng(0).permutation(len(union)).tolist()  # new number of each node
    shuffled = found(nx.relabel_nodes(union, dict(enumerate(order))))
    assert [shuffled[number] for number in order] == lengths


def test_trees_have_no_cycles() -> None:
    assert found(nx.random_labeled_tree(23, seed=0)) == [0] * 23
    assert found(nx.star_graph(30_000)) == [0] * 30_001  # quickly
    assert found(nx.empty_graph(3)) == [0] * 3
    assert shortest_cycles(torch.empty(2, 0, dtype=torch.int64), 0).tolist() == []


def test_loops_and_repeated_edges_are_no_cycles() -> None:
    edges = torch.tensor([[0, 0, 1, 0, 1, 1, 2], [0, 1, 0, 1, 0, 2, 1]])
    assert shortest_cycles(edges, 3).tolist() == [0, 0, 0]

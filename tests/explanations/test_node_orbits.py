"""Orbits of graphs whose symmetries are known."""

import networkx as nx
import pytest
import torch

from tfgw.explanations import node_orbits as module
from tfgw.explanations.node_orbits import mean_over_orbits, node_orbits, pair_orbits


def orbits_of(graph: nx.Graph, features: list[float] | None = None) -> list[int]:
    n = len(graph)
    x = torch.zeros(n, 1) if features is None else torch.tensor(features)[:, None]
    C = torch.from_numpy(nx.to_numpy_array(graph, nodelist=range(n)))
    return node_orbits(x, torch.full((n,), 1 / n), C).tolist()


def partition(numbers: list[int]) -> set[frozenset[int]]:
    return {frozenset(i for i, other in enumerate(numbers) if other == number) for number in numbers}


def sets(*groups: tuple[int, ...]) -> set[frozenset[int]]:
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (nx.path_graph(5), sets((0, 4), (1, 3), (2,))),
        (nx.star_graph(3), sets((0,), (1, 2, 3))),
        (nx.cycle_graph(7), sets(tuple(range(7)))),
        (nx.petersen_graph(), sets(tuple(range(10)))),
        # Colour refinement cannot tell the ring of six from the two rings of three.
        (
            nx.disjoint_union_all([nx.cycle_graph(6), nx.cycle_graph(3), nx.cycle_graph(3)]),
            sets(tuple(range(6)), tuple(range(6, 12))),
        ),
        (nx.frucht_graph(), sets(*((i,) for i in range(12)))),
    ],
)
def test_known_orbits(graph: nx.Graph, expected: set[frozenset[int]]) -> None:
    assert partition(orbits_of(graph)) == expected


def test_features_break_symmetry() -> None:
    assert partition(orbits_of(nx.cycle_graph(6), [1.0, 0, 0, 0, 0, 0])) == sets((0,), (1, 5), (2, 4), (3,))


def test_direction_breaks_symmetry() -> None:
    C = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert partition(node_orbits(torch.zeros(3, 1), torch.full((3,), 1 / 3), C).tolist()) == sets((0,), (1,), (2,))


def test_very_large_graphs_share_by_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    assert partition(orbits_of(nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(3)))) == sets(tuple(range(9)))


def test_means_keep_sums() -> None:
    values, orbits = torch.tensor([[1.0, 2, 6, 5], [4, 0, 8, 1]]), torch.tensor([0, 1, 1, 0])
    found = mean_over_orbits(values, orbits)
    assert found.tolist() == [[3, 4, 4, 3], [2.5, 4, 4, 2.5]]


def test_pairs_share_with_their_like() -> None:
    """In a path of four, the two outer edges share, the middle one stands alone, in either direction."""
    C = torch.from_numpy(nx.to_numpy_array(nx.path_graph(4)))
    pairs = pair_orbits(torch.tensor([0, 1, 1, 0]), C).reshape(4, 4)
    assert pairs[0, 1] == pairs[3, 2] != pairs[1, 0]
    assert pairs[1, 2] == pairs[2, 1] != pairs[1, 1] == pairs[2, 2]
    assert pairs[0, 2] != pairs[0, 1]

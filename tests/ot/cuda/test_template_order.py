"""The kernels order the nodes of a template by what they are, not by their numbers."""

from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
import torch

from tests.ot.cuda import emulation
from tests.ot.cuda.emulation import EmulatedGpu
from tests.ot.symmetric_graphs import SYMMETRIC
from tfgw.ot import _core
from tfgw.ot.problem import RESULTS, Problem

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")


class Ordered(NamedTuple):
    distances: torch.Tensor
    live: np.ndarray
    """(templates, nodes with weight): number of each node in its place."""
    constants: np.ndarray
    matrices: np.ndarray
    """(templates, nodes with weight, nodes with weight)."""


def ordered(structure: np.ndarray, features: np.ndarray, weights: np.ndarray) -> Ordered:
    """What the kernels make of templates, and their distances to a small graph without symmetries."""
    rng = np.random.default_rng(5)
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 1, 3], [1, 0, 2, 1, 3, 2, 3, 1]])
    count, columns, width = features.shape
    given = Problem(
        x=torch.from_numpy(rng.normal(size=(6, width))),
        batch=torch.zeros(6, dtype=torch.int64),
        batch_size=1,
        node_weights=None,
        edge_index=edge_index,
        edge_weight=None,
        structure=None,
        template_structure=torch.from_numpy(structure),
        template_features=torch.from_numpy(features),
        template_weights=torch.from_numpy(weights),
        alpha=torch.full((count,), 0.4, dtype=torch.float64),
    )
    found = EmulatedGpu().host.solve(given._replace(max_iter=3), 1e-6, RESULTS)
    assert found is not None
    places = _core.gpu_prepared(
        graphs=1, nodes=6, features=width, edges=edge_index.shape[1], templates=count, columns=columns
    )
    memory, padded = found[3].numpy(), _core.gpu_size_class(columns)

    def member(name: str, kind: type) -> np.ndarray:
        at, size = places[name]
        return memory[at : at + size].view(kind)

    (live,) = set(member("live_count", np.int32)[:count].tolist())
    matrices = member("C", np.float64)[: count * padded**2].reshape(count, padded, padded)
    return Ordered(
        found[0],
        member("live", np.int32)[: count * padded].reshape(count, padded)[:, :live],
        member("t_constant", np.float64)[:count],
        matrices[:, :live, :live],
    )


def renumbered(
    structure: np.ndarray, features: np.ndarray, weights: np.ndarray, *, copies: int = 3, seed: int = 0
) -> Ordered:
    """A template and copies of it with other numbers."""
    rng, nodes = np.random.default_rng(seed), len(weights)
    orders = [np.arange(nodes), *(rng.permutation(nodes) for _ in range(copies))]
    found = ordered(
        np.stack([structure[np.ix_(order, order)] for order in orders]),
        np.stack([features[order] for order in orders]),
        np.stack([weights[order] for order in orders]),
    )
    for order, live, matrix in zip(orders, found.live, found.matrices, strict=True):
        np.testing.assert_array_equal(structure[np.ix_(order[live], order[live])], matrix)
        kept = np.flatnonzero(weights[order] > 0)
        np.testing.assert_array_equal(np.sort(live), kept)
    return found


def assert_equal_bits(found: Ordered) -> None:
    assert torch.equal(found.distances, found.distances[:, :1].expand_as(found.distances))
    assert (found.constants == found.constants[0]).all()
    assert (found.matrices == found.matrices[0]).all()


SLOW = "rook and Shrikhande"  # in the emulation
TOO_LARGE = "equal components"  # for the bounded search
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name == SLOW else name for name in SYMMETRIC]


@pytest.mark.parametrize("name", [name for name in NAMES if name != TOO_LARGE])
def test_nodes_that_are_alike(name: str) -> None:
    structure = nx.to_numpy_array(SYMMETRIC[name])
    nodes = len(structure)
    assert_equal_bits(renumbered(structure, np.ones((nodes, 2)), np.full(nodes, 1 / nodes)))


@pytest.mark.parametrize("case", range(12))
def test_few_different_values(case: int) -> None:
    """Directed and weighted structures, loops, several classes of features and weights, some of them zero."""
    rng = np.random.default_rng(case)
    nodes = int(rng.integers(3, 19))
    structure = rng.integers(-1, 2, (nodes, nodes)) * rng.integers(0, 2, (nodes, nodes)).astype(float)
    structure = structure if case % 2 else np.triu(structure) + np.triu(structure, 1).T
    weights = rng.integers(case % 3 == 0, 3, nodes).astype(float)
    weights[0] = 1
    features = rng.integers(0, 2, (nodes, 2)).astype(float)
    assert_equal_bits(renumbered(structure, features, weights / weights.sum(), seed=case))


def test_random_templates() -> None:
    """Without ties, sums over nodes have a fixed order as well."""
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(23))
    weights[[4, 9]] = 0
    found = renumbered(rng.normal(size=(23, 23)), rng.normal(size=(23, 3)), weights / weights.sum())
    assert_equal_bits(found)


def test_structure_decides_after_weights_and_features() -> None:
    """Weights come first, then features; the path's ends come before or after its middle among equals."""
    structure = nx.to_numpy_array(nx.path_graph(7))
    weights = np.array([1, 1, 1, 1, 1, 1, 2]) / 8
    features = np.array([[0.0], [1], [0], [1], [0], [0], [0]])
    live = renumbered(structure, features, weights, copies=1).live[0].tolist()
    assert live[-1] == 6
    assert set(live[:4]) == {0, 2, 4, 5}
    assert set(live[4:6]) == {1, 3}


def test_negative_zeros_are_zeros() -> None:
    structure = nx.to_numpy_array(nx.cycle_graph(8))
    structure[structure == 0] = -0.0
    structure[0, 2] = structure[3, 5] = 0.0
    assert_equal_bits(renumbered(structure, np.ones((8, 1)), np.full(8, 1 / 8)))


SIZES = (13, 27, 45, 70)  # one in each size class up to 128


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("kind", ["circle", "tree", "twins"])
def test_sizes(kind: str, nodes: int) -> None:
    """One warp orders the first two sizes, a block the others: by search, by refinement, and by exchanging twins."""
    if kind == "circle":
        graph = nx.disjoint_union(nx.cycle_graph(nodes - 5), nx.cycle_graph(5))
    elif kind == "tree":
        graph = nx.random_labeled_tree(nodes, seed=nodes)
    else:
        graph = nx.disjoint_union(nx.complete_graph(nodes // 3), nx.star_graph(nodes - nodes // 3 - 1))
    structure = nx.to_numpy_array(graph)
    assert_equal_bits(renumbered(structure, np.ones((nodes, 2)), np.full(nodes, 1 / nodes), copies=2, seed=nodes))


def test_a_single_node() -> None:
    assert_equal_bits(renumbered(np.array([[2.0]]), np.ones((1, 3)), np.ones(1)))


@pytest.mark.parametrize("nodes", [16, 32])
def test_templates_that_fill_their_size_class(nodes: int) -> None:
    """Two classes of features, and directed, weighted links, which a rotation preserves but for the last one."""
    steps = np.subtract.outer(np.arange(nodes), np.arange(nodes)) % nodes
    structure = np.where(steps == 1, 0.5, 0.0) + np.where(steps == 3, 2.0, 0.0)
    features = np.arange(nodes)[:, None] % 2 * np.ones((1, 2))
    uniform = np.full(nodes, 1 / nodes)
    assert_equal_bits(renumbered(structure, features, uniform))
    structure[0, 5] = 1.0
    assert_equal_bits(renumbered(structure, features, uniform))


def test_classes_of_features_that_structure_joins() -> None:
    """Twins but for their features are not exchanged; of twins with equal features, any may come first."""
    structure = nx.to_numpy_array(nx.complete_bipartite_graph(7, 4))
    features = np.array([0.0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1])[:, None]
    found = renumbered(structure, features, np.full(11, 1 / 11))
    assert (np.diff(features[found.live[0], 0]) >= 0).all()
    assert_equal_bits(found)

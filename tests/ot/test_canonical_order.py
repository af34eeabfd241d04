"""Canonical order: isomorphic graphs become equal, bit for bit, whatever they carry."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.ot.symmetric_graphs import SYMMETRIC
from tfgw import ot


def edges_of(graph: nx.Graph) -> Tensor:
    graph = nx.convert_node_labels_to_integers(graph)
    return torch.tensor(sorted(graph.to_directed().edges()), dtype=torch.int64).reshape(-1, 2).T


def adjacency_in_order(edge_index: Tensor, nodes: int) -> tuple[Tensor, bool]:
    """The adjacency matrix of a graph without features, in canonical order."""
    found = ot.canonical_order(ot.GraphBatch(torch.zeros(nodes, 0), edge_index=edge_index))
    matrix = torch.zeros(nodes, nodes)
    matrix[edge_index[0], edge_index[1]] = 1
    return matrix[found.order][:, found.order], bool(found.exact)


def shuffled(edge_index: Tensor, nodes: int, rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rng.permutation(nodes))[edge_index]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_graphs(name: str) -> None:
    edge_index, nodes = edges_of(SYMMETRIC[name]), SYMMETRIC[name].number_of_nodes()
    rng = np.random.default_rng(0)
    expected, exact = adjacency_in_order(edge_index, nodes)
    assert exact
    for _ in range(10):
        found, exact = adjacency_in_order(shuffled(edge_index, nodes, rng), nodes)
        assert exact
        assert torch.equal(found, expected)


@st.composite
def attributed_graphs(draw: st.DrawFn) -> dict[str, Tensor | None]:
    """Few different values, so that many nodes and edges are alike."""
    nodes = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weighted, directed, dense, heavy = (draw(st.booleans()) for _ in range(4))
    matrix = rng.integers(0, 3, (nodes, nodes)) * rng.integers(0, 2, (nodes, nodes))
    matrix = matrix if directed else np.triu(matrix) + np.triu(matrix, 1).T
    weights = rng.integers(1, 3, nodes)
    return {
        "x": torch.from_numpy(rng.integers(0, 2, (nodes, draw(st.integers(0, 2)))).astype(float)),
        "matrix": torch.from_numpy(matrix.astype(float) if weighted or dense else (matrix > 0).astype(float)),
        "node_weights": torch.from_numpy(weights / weights.sum()) if heavy else None,
        "dense": torch.tensor(dense),
    }


def as_batch(graph: dict[str, Tensor | None], order: Tensor) -> ot.GraphBatch:
    matrix = graph["matrix"][order][:, order]
    edge_index = matrix.nonzero().T
    weights = graph["node_weights"]
    structure = {"structure": matrix.flatten()}
    sparse = {"edge_index": edge_index, "edge_weight": matrix[edge_index[0], edge_index[1]]}
    return ot.GraphBatch(
        graph["x"][order],
        node_weights=None if weights is None else weights[order],
        **(structure if graph["dense"] else sparse),
    )


@settings(max_examples=200)
@given(attributed_graphs(), st.randoms(use_true_random=False))
def test_attributed_graphs(graph: dict[str, Tensor | None], random: object) -> None:
    nodes = len(graph["x"])
    numbers = list(range(nodes))
    random.shuffle(numbers)
    found = []
    for order in (torch.arange(nodes), torch.tensor(numbers)):
        order = order[ot.canonical_order(as_batch(graph, order)).order]
        weights = graph["node_weights"]
        found.append(
            (graph["x"][order], graph["matrix"][order][:, order], weights if weights is None else weights[order])
        )
    for first, second in zip(*found, strict=True):
        assert first is second or torch.equal(first, second)


def test_batch_is_graph_by_graph() -> None:
    graphs = [nx.petersen_graph(), nx.path_graph(4), nx.cycle_graph(7)]
    sizes = [graph.number_of_nodes() for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    edges = torch.cat([edges_of(graph) + start for graph, start in zip(graphs, starts, strict=True)], 1)
    batch = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    x = torch.zeros(sum(sizes), 0)
    order = ot.canonical_order(ot.GraphBatch(x, batch=batch, edge_index=edges)).order
    single = [
        ot.canonical_order(ot.GraphBatch(x[:size], edge_index=edges_of(graph))).order + start
        for graph, size, start in zip(graphs, sizes, starts, strict=True)
    ]
    assert torch.equal(order, torch.cat(single))


def test_edge_attributes_tell_edges_apart() -> None:
    ring = edges_of(nx.cycle_graph(6))
    attr = torch.zeros(12)
    marked = int(((ring[0] == 2) & (ring[1] == 3)).nonzero())
    attr[marked] = 1
    order = ot.canonical_order(ot.GraphBatch(torch.zeros(6, 0), edge_index=ring), edge_attr=attr).order
    turned = ot.canonical_order(ot.GraphBatch(torch.zeros(6, 0), edge_index=(ring + 1) % 6), edge_attr=attr).order
    assert torch.equal((order + 1) % 6, turned)  # with one marked direction, no symmetry is left


def test_search_is_bounded_and_says_so() -> None:
    points = [(1, a, b) for a in range(7) for b in range(7)] + [(0, 1, a) for a in range(7)] + [(0, 0, 1)]
    incident = [(p, q) for p in points for q in points if sum(a * b for a, b in zip(p, q, strict=True)) % 7 == 0]
    plane = nx.Graph([((0, *p), (1, *q)) for p, q in incident])
    graph = ot.GraphBatch(torch.zeros(len(plane), 0), edge_index=edges_of(plane))
    first, second = (ot.canonical_order(graph, effort=2**20) for _ in range(2))
    assert not bool(first.exact)
    assert sorted(first.order.tolist()) == list(range(len(plane)))
    assert torch.equal(first.order, second.order)


def test_bad_input() -> None:
    x = torch.zeros(3, 1)
    with pytest.raises(ValueError, match="edge_index: points to a node outside 0 to 2"):
        ot.canonical_order(ot.GraphBatch(x, edge_index=torch.tensor([[0], [3]])))
    with pytest.raises(ValueError, match="edge_index: edge 0 joins graph 0 and graph 1"):
        ot.canonical_order(ot.GraphBatch(x, batch=torch.tensor([0, 0, 1]), edge_index=torch.tensor([[1], [2]])))
    with pytest.raises(ValueError, match="structure: has 4 entries"):
        ot.canonical_order(ot.GraphBatch(x, structure=torch.zeros(4)))
    with pytest.raises(ValueError, match="not finite"):
        ot.canonical_order(ot.GraphBatch(torch.full((3, 1), torch.nan)))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("symmetric", [True, False])
def test_template_order_changes_nothing(alpha: float, symmetric: bool) -> None:
    """Also where the nodes of a template are alike: templates are sorted inside the solver."""
    rng = np.random.default_rng(3)
    C = torch.from_numpy(nx.to_numpy_array(SYMMETRIC["cycles of two lengths"]))
    m = len(C)
    if symmetric:
        F, h = torch.ones(1, m, 2, dtype=torch.float64), torch.full((1, m), 1 / m, dtype=torch.float64)
    else:
        F, h = torch.from_numpy(rng.normal(size=(1, m, 2))), torch.from_numpy(rng.dirichlet(np.ones(m), 1))
        h[0, 4] = 0
        h /= h.sum()
    graph = nx.gnp_random_graph(14, 0.3, seed=4)
    graphs = ot.GraphBatch(torch.from_numpy(rng.normal(size=(14, 2))), edge_index=edges_of(graph))
    before = ot.fgw(graphs, ot.Templates(F, C[None], h), alpha, n_starts=3)
    for _ in range(5):
        order = torch.from_numpy(rng.permutation(m))
        after = ot.fgw(graphs, ot.Templates(F[:, order], C[order][:, order][None], h[:, order]), alpha, n_starts=3)
        assert torch.equal(before.distances, after.distances)
        if not symmetric:
            assert torch.equal(before.plans[..., order], after.plans)


def test_signs_of_zeros_tell_no_nodes_apart() -> None:
    path = edges_of(nx.path_graph(6))
    x = torch.tensor([0.0, -0.0, 0.0, 0.0, -0.0, -0.0])[:, None]
    signed, plain = (ot.canonical_order(ot.GraphBatch(value, edge_index=path)).order for value in (x, x.abs()))
    assert torch.equal(signed, plain)


def test_matrices_beside_the_edges_tell_nodes_apart() -> None:
    """A ring is symmetric; with a marked node and a marked pair next to it, no symmetry is left."""
    ring = edges_of(nx.cycle_graph(6))
    marks = torch.zeros(6, 6)
    marks[2, 2], marks[2, 3] = 5, 7
    turned = marks.roll((1, 1), (0, 1))
    for edges in (ring, (ring + 1) % 6):
        graphs = ot.GraphBatch(torch.zeros(6, 0), edge_index=edges)
        first, second = (ot.canonical_order(graphs, structure=matrix).order for matrix in (marks, turned))
        assert torch.equal((first + 1) % 6, second)
        assert torch.equal(ot.canonical_order(graphs, structure=marks.flatten()).order, first)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_weights_and_attributes_tell_edges_apart(weighted: bool, columns: int) -> None:
    """One direction of one edge of a ring is marked in the last of them, so that no symmetry is left."""
    ring = edges_of(nx.cycle_graph(6))
    marked = ((ring[0] == 2) & (ring[1] == 3)).double()
    weights = marked if columns == 0 else torch.ones(12) if weighted else None
    attr = torch.cat([torch.zeros(12, columns - 1), marked[:, None]], 1) if columns else None
    orders = [
        ot.canonical_order(ot.GraphBatch(torch.zeros(6, 0), edge_index=edges, edge_weight=weights), edge_attr=attr)
        for edges in (ring, (ring + 1) % 6)
    ]
    assert torch.equal((orders[0].order + 1) % 6, orders[1].order)


def test_bad_edges_are_named_in_a_batch() -> None:
    x, batch = torch.zeros(5, 1), torch.tensor([0, 0, 1, 1, 2])
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 4]])
    with pytest.raises(ValueError, match="edge_index: edge 3 joins graph 1 and graph 2"):
        ot.canonical_order(ot.GraphBatch(x, batch=batch, edge_index=edges))
    with pytest.raises(ValueError, match="edge_index: points to a node outside 0 to 4"):
        ot.canonical_order(ot.GraphBatch(x, edge_index=torch.tensor([[0], [-1]])))
    none = ot.canonical_order(ot.GraphBatch(x, batch=batch, edge_index=torch.zeros(2, 0, dtype=torch.int64)))
    assert (none.exact.tolist(), none.order.sort().values.tolist()) == ([True] * 3, [0, 1, 2, 3, 4])


def test_sizes_of_matrices_are_those_of_the_graphs() -> None:
    x, batch = torch.zeros(5, 0), torch.tensor([0, 0, 1, 1, 1])
    found = ot.canonical_order(ot.GraphBatch(x, batch=batch), structure=torch.eye(13)[0])
    assert found.exact.tolist() == [True, True]
    with pytest.raises(ValueError, match="structure: has 25 entries, which does not fit the sizes of the graphs"):
        ot.canonical_order(ot.GraphBatch(x, batch=batch), structure=torch.zeros(5, 5))

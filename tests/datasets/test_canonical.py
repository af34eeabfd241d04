"""The transform: everything that belongs to a node or an edge moves with it."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import CanonicalOrder, GraphDataset, ShortestPaths, skip_circles


def house() -> Data:
    """A square with a roof; a mirror symmetry, which edge weights break."""
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4]]).T
    return Data(
        x=torch.ones(5, 1),
        edge_index=torch.cat([edges, edges.flip(0)], 1),
        edge_weight=torch.tensor([1.0, 2, 1, 1, 1, 1]).repeat(2),
        edge_attr=torch.arange(6.0).repeat(2)[:, None],
        node_weights=torch.full((5,), 0.2),
        name=torch.arange(5),
        y=torch.tensor([1]),
    )


def renumbered(data: Data, rng: np.random.Generator) -> Data:
    order = torch.from_numpy(rng.permutation(data.num_nodes))
    edges = torch.from_numpy(rng.permutation(data.num_edges))
    return Data(
        x=data.x[order],
        edge_index=order.argsort()[data.edge_index[:, edges]],
        edge_weight=data.edge_weight[edges],
        edge_attr=data.edge_attr[edges],
        node_weights=data.node_weights[order],
        name=data.name[order],
        y=data.y,
    )


def test_renumbered_graphs_become_equal() -> None:
    rng = np.random.default_rng(0)
    expected = CanonicalOrder()(house())
    for _ in range(10):
        found = CanonicalOrder()(renumbered(house(), rng))
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[key], expected[key]) for key in expected.keys())  # noqa: SIM118


def test_it_is_still_the_same_graph() -> None:
    before, after = house(), CanonicalOrder()(house())
    original = {(int(s), int(t)): float(w) for s, t, w in zip(*before.edge_index, before.edge_weight, strict=True)}
    names = after.name[after.edge_index]
    assert {(int(s), int(t)): float(w) for s, t, w in zip(*names, after.edge_weight, strict=True)} == original
    keys = after.edge_index[0] * 5 + after.edge_index[1]
    assert torch.equal(keys, keys.sort().values)
    assert torch.equal(before.name, torch.arange(5))  # the argument is left as it was


def test_structure_moves_along() -> None:
    data = CanonicalOrder()(ShortestPaths()(house()))
    assert torch.equal(data.structure, ShortestPaths()(data.clone()).structure)


def test_edge_attributes_count_if_asked() -> None:
    rng = np.random.default_rng(1)
    symmetric = house()
    symmetric.edge_weight = torch.ones(12)
    other = symmetric.clone()
    other.edge_attr = other.edge_attr.roll(1, 0)
    plain = CanonicalOrder()
    assert torch.equal(plain(symmetric).edge_index, plain(other).edge_index)
    aware = CanonicalOrder(edge_attr=True)
    expected = aware(symmetric)
    for _ in range(5):
        assert torch.equal(aware(renumbered(symmetric, rng)).edge_attr, expected.edge_attr)


def test_copies_of_a_class_become_equal() -> None:
    dataset = skip_circles(copies=3).train.map(CanonicalOrder())
    by_class: dict[int, list[torch.Tensor]] = {}
    for graph in dataset:
        by_class.setdefault(int(graph.y), []).append(graph.edge_index)
    for copies in by_class.values():
        assert all(torch.equal(copies[0], copy) for copy in copies)
    assert len({tuple(copies[0].flatten().tolist()) for copies in by_class.values()}) == len(by_class)


def test_giving_up_is_told() -> None:
    plane = [(p, q) for p in range(13) for q in range(13) if (p + q) % 13 in (0, 1, 3, 9)]  # order 3
    edges = torch.tensor([(p, 13 + q) for p, q in plane]).T
    data = Data(x=torch.ones(26, 1), edge_index=torch.cat([edges, edges.flip(0)], 1))
    with pytest.warns(UserWarning, match="a graph of 26 nodes is too symmetric"):
        CanonicalOrder(effort=1000)(data)


def rings() -> list[Data]:
    """Directed rings, with as many edges as nodes, weights, matrices, and a graph-level attribute of five numbers."""
    graphs = []
    for nodes in (3, 5, 1, 4):
        ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
        graph = Data(x=torch.arange(nodes)[:, None] % 2.0, edge_index=ring, y=torch.tensor([nodes % 2]))
        graph.edge_weight = torch.linspace(1, 2, nodes)
        graph.node_weights = torch.arange(1.0, nodes + 1) / nodes
        graph.structure = torch.arange(float(nodes**2))
        graph.summary = torch.arange(6.0)
        graphs.append(graph)
    return graphs


@pytest.mark.parametrize("chosen", [slice(None), [3, 1], [2]])
def test_a_dataset_is_put_in_order_at_once(chosen: slice | list[int]) -> None:
    rng = np.random.default_rng(1)
    houses = GraphDataset.from_graphs([renumbered(house(), rng) for _ in range(4)], name="houses")
    circles = GraphDataset.from_graphs(rings(), name="rings")
    for dataset, transform in ((houses, CanonicalOrder(edge_attr=True)), (circles, CanonicalOrder())):
        found, expected = transform.of_dataset(dataset[chosen]), dataset[chosen].map(transform)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert set(one.keys()) == set(other.keys())
            assert all(torch.equal(one[key], other[key]) for key in other.keys())  # noqa: SIM118

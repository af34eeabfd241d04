"""Details of pairs are those of the solves of ``pairwise``."""

import pytest
import torch
from torch_geometric.data import Data

from tfgw import ot
from tfgw.ot.graph_lists import read_graphs
from tfgw.ot.pair_details import pair_details

CLOSE = {"rtol": 0, "atol": 1e-12}


def graphs(sizes: list[int], seed: int) -> list[Data]:
    generator = torch.Generator().manual_seed(seed)
    found = []
    for n in sizes:
        upper = torch.rand(n, n, generator=generator).triu(1) > 0.5
        h = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
        found.append(
            Data(
                x=torch.randn(n, 2, generator=generator, dtype=torch.float64),
                edge_index=(upper | upper.T).nonzero().T.contiguous(),
                node_weights=h / h.sum(),
            )
        )
    return found


def test_distances_have_the_bits_of_pairwise(seed: int) -> None:
    """For other graphs that are smaller, larger, of equal size, and equal."""
    own, others = graphs([5, 7], seed), graphs([3, 9, 5, 7, 4], seed + 1)
    others.insert(2, own[1].clone())
    for alpha, starts in ((0.0, 1), (0.6, 1), (0.6, 3)):
        found = pair_details(own, others, alpha=alpha, n_starts=starts)
        expected = ot.pairwise(own, others, alpha=alpha, n_starts=starts, canonical=False)
        assert torch.equal(found.diagnosis.distances, expected)
        assert float(found.diagnosis.distances[1, 2]) == 0
        assert (found.diagnosis.spreads > 0).any() == (starts > 1)


def test_plans_are_couplings_with_the_value_of_the_distance(seed: int) -> None:
    own, others, alpha = graphs([5, 7], seed), graphs([3, 9, 5, 7], seed + 1), 0.6
    others.append(own[0].clone())
    details = pair_details(own, others, alpha=alpha)
    assert (details.plans.pairs.diff() >= 0).all()
    for b, graph in enumerate(own):
        for k, other in enumerate(others):
            T = torch.zeros(graph.num_nodes, other.num_nodes, dtype=torch.float64)
            of_pair = details.plans.pairs == b * len(others) + k
            T[details.plans.rows[of_pair], details.plans.columns[of_pair]] = details.plans.mass[of_pair]
            torch.testing.assert_close(T.sum(1), graph.node_weights, **CLOSE)
            torch.testing.assert_close(T.sum(0), other.node_weights, **CLOSE)
            C, C_bar = (torch.zeros(g.num_nodes, g.num_nodes).double() for g in (graph, other))
            C[tuple(graph.edge_index)], C_bar[tuple(other.edge_index)] = 1, 1
            structure = torch.einsum("ia,jb,ijab->", T, T, (C[:, :, None, None] - C_bar).square())
            features = (T * (graph.x[:, None] - other.x).square().sum(-1)).sum()
            value = alpha * structure + (1 - alpha) * features
            torch.testing.assert_close(details.diagnosis.distances[b, k], value, **CLOSE)


@pytest.mark.parametrize("node_cost", ["euclidean", "hamming"])
def test_other_costs_between_features(node_cost: str, seed: int) -> None:
    """Plans have the value of the distance; without structure, the lower bound is the distance itself."""
    own, others = graphs([5, 7], seed), graphs([3, 9, 4], seed + 1)
    for data in (*own, *others):
        data.x = data.x.round()
    details = pair_details(own, others, alpha=0.0, node_cost=node_cost, lower_bounds=True)
    expected = ot.pairwise(own, others, alpha=0.0, node_cost=node_cost, canonical=False)
    assert torch.equal(details.diagnosis.distances, expected)
    torch.testing.assert_close(details.diagnosis.lower_bounds, expected, rtol=1e-9, atol=1e-9)
    for pair in range(6):
        graph, other = own[pair // 3], others[pair % 3]
        difference = graph.x[:, None] - other.x
        cost = (difference != 0).double().mean(-1) if node_cost == "hamming" else difference.norm(dim=-1)
        of_pair = details.plans.pairs == pair
        row, column, mass = (field[of_pair] for field in details.plans[1:])
        torch.testing.assert_close((mass * cost[row, column]).sum(), expected[pair // 3, pair % 3], **CLOSE)


def test_distances_between_nested_labels_are_those_of_pairwise(seed: int) -> None:
    own, others = graphs([5, 7], seed), graphs([3, 9, 4], seed + 1)
    for data in (*own, *others):
        coarse = (data.x[:, :1] * 2).round()
        data.x = torch.cat([coarse, 100 * coarse + (data.x[:, 1:2] * 2).round()], dim=1)
    options = {"alpha": 0.0, "node_cost": "hamming"}
    details = pair_details(own, others, **options)
    assert torch.equal(details.diagnosis.distances, ot.pairwise(own, others, canonical=False, **options))


def test_plans_without_structure_are_between_the_original_nodes(seed: int) -> None:
    """The solver merges nodes with equal features; their mass is divided by their weights."""
    own, others = graphs([5, 7], seed), graphs([3, 9], seed + 1)
    for data in (*own, *others):
        data.x = (data.x > 0).double()
    others.append(own[1].clone())
    details = pair_details(own, others, alpha=0.0)
    for b, graph in enumerate(own):
        for k, other in enumerate(others):
            T = torch.zeros(graph.num_nodes, other.num_nodes, dtype=torch.float64)
            of_pair = details.plans.pairs == b * len(others) + k
            T[details.plans.rows[of_pair], details.plans.columns[of_pair]] = details.plans.mass[of_pair]
            torch.testing.assert_close(T.sum(1), graph.node_weights, **CLOSE)
            torch.testing.assert_close(T.sum(0), other.node_weights, **CLOSE)
            cost = (T * (graph.x[:, None] - other.x).square().sum(-1)).sum()
            torch.testing.assert_close(details.diagnosis.distances[b, k], cost, **CLOSE)


def test_quality_is_that_of_diagnose(seed: int) -> None:
    """A graph and two smaller ones, which are the templates of both functions."""
    (graph,), others = graphs([9], seed), graphs([6, 6], seed + 1)
    for data in (graph, *others):
        data.x = data.x.round()
    found = pair_details([graph], others, alpha=0.7, n_starts=4, lower_bounds=True).diagnosis
    structure = torch.zeros(2, 6, 6, dtype=torch.float64)
    for k, other in enumerate(others):
        structure[k][tuple(other.edge_index)] = 1
    features, weights = (torch.stack([other[name] for other in others]) for name in ("x", "node_weights"))
    expected = ot.diagnose(
        ot.GraphBatch(graph.x, edge_index=graph.edge_index, node_weights=graph.node_weights),
        ot.Templates(features, structure, weights),
        0.7,
        n_starts=4,
    )
    for name in ("distances", "lower_bounds", "spreads", "gaps"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), **CLOSE)
    assert torch.equal(found.local_minima, expected.local_minima)
    assert torch.equal(found.status, expected.status)
    assert (found.lower_bounds > 0).all()
    assert pair_details([graph], others, alpha=0.7).diagnosis.lower_bounds.max() == 0


def test_a_single_pair_of_equal_graphs() -> None:
    (graph,) = graphs([5], 0)
    found = pair_details([graph], [graph.clone()], alpha=0.5)
    assert float(found.diagnosis.distances) == 0
    assert bool(found.diagnosis.local_minima)
    assert found.plans.rows.tolist() == found.plans.columns.tolist() == list(range(5))


def test_a_list_that_is_read_once_gives_the_same_bits(seed: int) -> None:
    own, others = graphs([5, 7], seed), graphs([3, 9, 5], seed + 1)
    for alpha in (0.0, 0.6):
        known = read_graphs(others, features_only=alpha == 0)
        expected = ot.pairwise(own, others, alpha=alpha, canonical=False)
        assert torch.equal(ot.pairwise(own, known, alpha=alpha, canonical=False), expected)
        assert torch.equal(pair_details(own, known, alpha=alpha).diagnosis.distances, expected)
        assert torch.equal(ot.pairwise(own, known, alpha=alpha), ot.pairwise(own, others, alpha=alpha))
        with pytest.raises(ValueError, match="others: were read for another kind of comparison"):
            ot.pairwise(own, known, alpha=0.3 if alpha == 0 else 0.0)

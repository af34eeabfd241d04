"""Tables of distances: the same as pair by pair, whatever the order, and kept on disk."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import ot as pot
import pytest
import torch
from torch_geometric.data import Data

from tests.baselines.small import awkward_graphs, labelled_graphs
from tests.ot.ragged_graphs import matrix
from tfgw.baselines import WWL, FGWKernel
from tfgw.baselines.fgw_kernel import FGWComparison
from tfgw.baselines.wwl import WWLComparison
from tfgw.estimators.distance_cache import cached_table, read_table, write_table
from tfgw.estimators.distance_table import Comparison, DistanceTable, all_pairs, key_of
from tfgw.nn.tfgw_pooling import Structure

COMPARISONS = [FGWComparison(0.5, "adjacency"), FGWComparison(0.3, "shortest_path"), WWLComparison(2, "discrete")]


def graphs() -> list[Data]:
    """Eleven graphs of different sizes, one of them twice."""
    different = [*awkward_graphs(), *labelled_graphs(4)[0]]
    return [*different, different[4].clone()]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: c.name)
def test_a_table_has_each_graph_once(comparison: Comparison) -> None:
    table = all_pairs(graphs(), comparison)
    assert len(table.keys) == 10
    keys = [key_of(graph) for graph in graphs()]
    found = table.between(keys, keys)
    for i, first in enumerate(graphs()):
        for j, second in enumerate(graphs()):
            assert found[i, j] == comparison.distances([first], [second])[0, 0]
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 0).all()
    assert (found[keys.index(keys[4])] == found[-1]).all()


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: c.name)
def test_distances_to_others_are_those_of_the_whole(comparison: Comparison) -> None:
    everything = graphs()
    whole = comparison.distances(everything)
    np.testing.assert_array_equal(comparison.distances(everything[:5], everything[3:]), whole[:5, 3:])
    np.testing.assert_array_equal(comparison.distances(everything[::-1]), whole[::-1, ::-1])


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
def test_fgw_agrees_with_pot(structure: Structure) -> None:
    """Local minima, of which there are few where features have no ties and weigh most."""
    some, rng = labelled_graphs(12)[0], np.random.default_rng(0)
    for graph in some:
        graph.x = graph.x + 0.3 * torch.from_numpy(rng.normal(size=tuple(graph.x.shape)))
    comparison = FGWComparison(0.05, structure)
    keys = [key_of(graph) for graph in some]
    found = all_pairs(some, comparison).between(keys, keys)
    ours, theirs = [], []
    for i, j in zip(*np.triu_indices(len(some), 1), strict=True):
        large, small = (comparison.prepare(some[k]) for k in sorted((i, j), key=lambda k: -some[k].num_nodes))
        cost = pot.dist(large.x.numpy(), small.x.numpy())
        structures = matrix(large).numpy(), matrix(small).numpy()
        theirs.append(pot.fused_gromov_wasserstein2(cost, *structures, alpha=0.05))
        ours.append(found[i, j])
    assert np.mean(np.isclose(ours, theirs, rtol=1e-5)) > 0.8
    assert np.mean(ours) <= np.mean(theirs) * 1.001


@pytest.mark.parametrize("version", ["discrete", "continuous"])
def test_wwl_is_the_optimum_of_its_linear_problem(version: str) -> None:
    some = [*awkward_graphs()[:5], *labelled_graphs(4)[0]]
    comparison = WWLComparison(2, version)
    keys = [key_of(graph) for graph in some]
    found = all_pairs(some, comparison).between(keys, keys)
    prepared = [comparison.prepare(graph).x.numpy() for graph in some]
    for i, a in enumerate(prepared):
        for j, b in enumerate(prepared):
            if version == "discrete":
                cost = (a[:, None] != b[None]).mean(-1)
            else:
                cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
            weights = np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b))
            assert found[i, j] == pytest.approx(pot.emd2(*weights, cost), abs=1e-9)


def test_keys_see_features_and_edges_and_not_the_order_of_edges() -> None:
    graph = labelled_graphs(1)[0][0]
    shuffled = Data(x=graph.x, edge_index=graph.edge_index.flip(1))
    assert key_of(shuffled) == key_of(graph)
    assert key_of(Data(x=graph.x + 1e-12, edge_index=graph.edge_index)) != key_of(graph)
    assert key_of(Data(x=graph.x, edge_index=graph.edge_index[:, :-2])) != key_of(graph)
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    sizes = [Data(x=torch.zeros(2, 0), edge_index=no_edges), Data(x=torch.zeros(3, 0), edge_index=no_edges)]
    assert key_of(sizes[0]) != key_of(sizes[1])


def test_cache_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some, names = labelled_graphs(16)
    model = FGWKernel(C=1.0, gamma=1.0, alpha=0.5, random_state=0)
    expected = model.fit(some[:12], names[:12]).decision_function(some)
    model = FGWKernel(C=1.0, gamma=1.0, alpha=0.5, random_state=0)
    model.precompute(some, tmp_path)
    monkeypatch.setattr(FGWComparison, "distances", lambda *_: pytest.fail("computed again"))
    again = FGWKernel(C=1.0, gamma=1.0, alpha=0.5, random_state=0, cache=tmp_path)
    for fitted in (model, again):
        np.testing.assert_array_equal(fitted.fit(some[:12], names[:12]).decision_function(some), expected)


def test_cache_of_other_graphs_or_parameters_is_not_used(tmp_path: Path) -> None:
    some = labelled_graphs(4)[0]
    table = all_pairs(some, WWLComparison(2, "discrete"))
    write_table(tmp_path, table)
    assert read_table(tmp_path, table.keys[:2].tolist()) is not None
    assert read_table(tmp_path, [*table.keys.tolist(), "another"]) is None
    assert WWLComparison(2, "discrete").name != WWLComparison(3, "discrete").name
    assert FGWComparison(0.1, "adjacency").name != FGWComparison(0.1, "shortest_path").name
    with pytest.raises(ValueError, match="cache: missing"):
        WWL().precompute(some)


def test_a_table_that_two_need_at_the_same_time_is_computed_once(tmp_path: Path) -> None:
    """They list the same graphs in a different order."""
    computed = []

    def compute(keys: list[str]) -> DistanceTable:
        computed.append(keys)
        time.sleep(0.2)
        return DistanceTable(np.array(keys), np.arange(9.0).reshape(3, 3))

    orders = [["a", "b", "c"], ["c", "a", "b"]]
    with ThreadPoolExecutor(2) as pool:
        tables = list(pool.map(lambda keys: cached_table(tmp_path, keys, lambda: compute(keys)), orders))
    assert len(computed) == 1
    assert all(table.keys.tolist() == computed[0] for table in tables)
    cached_table(tmp_path, ["a", "d"], lambda: compute(["a", "d", "e"]))
    assert len(computed) == 2

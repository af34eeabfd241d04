import itertools

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from tfgw.datasets import GraphDataset, four_cycles, skip_circles
from tfgw.datasets.synthetic import SKIPS


def as_nx(data: Data) -> nx.Graph:
    return to_networkx(data, to_undirected=True)


def degrees(data: Data) -> set[int]:
    return {degree for _, degree in as_nx(data).degree}


def edge_sets(dataset: GraphDataset) -> list[tuple]:
    return [tuple(map(tuple, graph.edge_index.tolist())) for graph in dataset]


def test_skip_circles_copies_are_isomorphic_to_their_class_and_only_to_it() -> None:
    split = skip_circles(copies=2, seed=3)
    bases = [nx.circulant_graph(41, [1, skip]) for skip in (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)]
    for data in itertools.chain(*split):
        assert degrees(data) == {4}
        assert nx.is_isomorphic(as_nx(data), bases[data.y])
    for a, b in itertools.combinations(bases, 2):
        assert not nx.is_isomorphic(a, b)


def test_skip_circles_sizes_labels_and_features() -> None:
    train, test = skip_circles(copies=3, seed=0)
    for dataset in (train, test):
        assert len(dataset) == 30
        assert dataset.classes == SKIPS
        assert dataset.y.bincount().tolist() == [3] * 10
        assert dataset.x.equal(torch.ones(30 * 41, 1))
        assert all(graph.num_edges == 4 * 41 for graph in dataset)


def test_skip_circles_are_all_different_as_labelled_graphs() -> None:
    split = skip_circles(copies=4, seed=1)
    everything = edge_sets(split.train) + edge_sets(split.test)
    assert len(set(everything)) == 80


def test_skip_circles_as_in_the_public_code() -> None:
    train, test = skip_circles(permute=False)
    assert edge_sets(train) == edge_sets(test)
    assert train.y.tolist() == list(range(10))
    for data, skip in zip(train, SKIPS, strict=True):
        assert nx.utils.graphs_equal(as_nx(data), nx.circulant_graph(41, [1, skip]))


def test_four_cycles_label_says_whether_there_is_one() -> None:
    for data in itertools.chain(*four_cycles(seed=5)):
        shortest = min(len(component) for component in nx.connected_components(as_nx(data)))
        assert degrees(data) == {2}  # a union of cycles, so a component is a cycle
        assert data.y.item() == int(shortest == 4)
        assert data.y.item() == int(nx.girth(as_nx(data)) == 4)


def test_four_cycles_sizes_and_features() -> None:
    for dataset in four_cycles(seed=0):
        assert len(dataset) == 50
        assert dataset.y.bincount().tolist() == [25, 25]
        assert dataset.x.equal(torch.ones(50 * 16, 1))


def test_four_cycles_has_five_isomorphism_types() -> None:
    # 2-regular graphs are unions of cycles, so the lengths of the cycles tell them apart.
    types = {
        tuple(sorted(map(len, nx.connected_components(as_nx(data)))))
        for data in itertools.chain(*four_cycles(seed=0), *four_cycles(seed=1))
    }
    assert types == {(16,), (8, 8), (4, 12), (4, 4, 8), (4, 4, 4, 4)}


@pytest.mark.parametrize("make", [skip_circles, four_cycles])
def test_seed_decides(make: type) -> None:
    assert edge_sets(make(seed=7).train) == edge_sets(make(seed=7).train)
    assert edge_sets(make(seed=7).train) != edge_sets(make(seed=8).train)
    assert edge_sets(make(seed=7).train) != edge_sets(make(seed=7).test)


def test_copies_must_be_positive() -> None:
    with pytest.raises(ValueError, match="copies=0: must be at least 1"):
        skip_circles(copies=0)

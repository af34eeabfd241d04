"""A list of PyTorch Geometric graphs goes wherever a dataset goes; a bare graph does not, and the error says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import (
    CanonicalOrder,
    NodeEncoding,
    Standardize,
    as_graph_dataset,
    from_data_list,
    load,
    random_split,
    save,
    statistics,
)
from tfgw.train import Preprocessing
from tfgw.train.batches import GraphStore


@pytest.fixture
def graphs() -> list[Data]:
    """Paths of 2 to 7 nodes with labels 5 and 9."""
    found = []
    for nodes in range(2, 8):
        there = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        x = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(nodes))
        found.append(Data(x=x, edge_index=torch.cat([there, there.flip(0)], 1), y=torch.tensor([5 + 4 * (nodes % 2)])))
    return found


USES: dict[str, Callable[[Any], Any]] = {
    "statistics": lambda given: statistics(given)._replace(name=""),
    "random_split": lambda given: [part.tolist() for part in random_split(given, val=0.4, test=0.3)],
    "Standardize": lambda given: Standardize().fit(given, [0, 2]).transform(given).x.tolist(),
    "CanonicalOrder": lambda given: CanonicalOrder().of_dataset(given).edge_index.tolist(),
    "Preprocessing": lambda given: Preprocessing.fit(given)(given).x.tolist(),
    "GraphStore": lambda given: GraphStore(given, dtype=torch.float64).batch(torch.tensor([3, 1])).inputs["x"].tolist(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_list_is_as_good_as_a_dataset(graphs: list[Data], use: Callable[[Any], Any]) -> None:
    assert use(graphs) == use(from_data_list(graphs))
    with pytest.raises(ValueError, match="a list of graphs"):
        use(graphs[0])


def test_a_list_is_saved(graphs: list[Data], tmp_path: Path) -> None:
    again = load(save(graphs, tmp_path / "paths"))
    assert again.classes == (5, 9)
    assert torch.equal(again.x, torch.cat([graph.x for graph in graphs]))
    with pytest.raises(ValueError, match="a list of graphs"):
        save(graphs[0], tmp_path / "path")


def test_graphs_without_features_get_those_of_an_encoding(graphs: list[Data]) -> None:
    bare = [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in graphs]
    assert as_graph_dataset(bare, encoding=NodeEncoding(features="constant")).x.tolist() == [[1.0]] * 27
    encoding = as_graph_dataset(bare).encoding
    assert as_graph_dataset(bare[:1], encoding=encoding).num_node_features == 3
    assert as_graph_dataset(graphs, encoding=encoding).num_node_features == 3
    assert as_graph_dataset(graphs, encoding=encoding).encoding is None


@pytest.mark.parametrize(
    ("given", "message"),
    [(7, "a list of graphs, got int"), ([], "the list of graphs is empty"), ([Data(), 3], "graph 0|graph 1")],
)
def test_what_is_no_list_of_graphs(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_graph_dataset(given)

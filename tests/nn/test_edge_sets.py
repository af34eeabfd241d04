"""Edges that are listed twice, self-loops and one-way edges mean the same in the layer, in estimators and in files."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import from_data_list, load
from tfgw.datasets.edge_sets import distinct_edges
from tfgw.estimators import as_graphs
from tfgw.nn import TFGWPooling

X = torch.arange(15, dtype=torch.float64).reshape(5, 3).cos()
PLAIN = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 0], [1, 0, 2, 1, 3, 2, 4, 3, 0, 4]])
MESSY = torch.cat([torch.tensor([[2, 1, 4], [2, 0, 4]]), PLAIN, PLAIN[:, 3:6]], dim=1)
ONE_WAY = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])


def written(edge_index: Tensor, folder: Path) -> Path:
    """The graph as a dataset in TU format."""
    folder.mkdir()
    edges = "".join(f"{source + 1}, {target + 1}\n" for source, target in edge_index.T.tolist())
    attributes = "".join(", ".join(map(repr, row)) + "\n" for row in X.tolist())
    tables = {"A": edges, "graph_indicator": "1\n" * 5, "graph_labels": "1\n", "node_attributes": attributes}
    for table, text in tables.items():
        (folder / f"messy_{table}.txt").write_text(text)
    return folder


def edges_everywhere(edge_index: Tensor, folder: Path) -> list[set[tuple[int, int]]]:
    """The edges that an estimator, a dataset of PyTorch Geometric's graphs, and a file are taken to have."""
    data = Data(x=X, edge_index=edge_index, y=1)
    graphs = [as_graphs([data], directed=True)[0], from_data_list([data])[0], load(written(edge_index, folder))[0]]
    for graph in graphs:
        assert len(graph.edge_index.T.unique(dim=0)) == graph.num_edges
    return [set(map(tuple, graph.edge_index.T.tolist())) for graph in graphs]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def layer_for(structure: str) -> TFGWPooling:
    torch.manual_seed(0)
    return TFGWPooling(3, 2, 4, structure=structure, n_starts=2).double()


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
def test_repeated_edges_and_loops_change_nothing(structure: str, tmp_path: Path) -> None:
    layer = layer_for(structure)
    assert torch.equal(layer(X, MESSY), layer(X, PLAIN))
    assert edges_everywhere(MESSY, tmp_path / "tu") == [set(map(tuple, PLAIN.T.tolist()))] * 3


def test_one_way_edges_stay_one_way(tmp_path: Path) -> None:
    layer = layer_for("adjacency")
    C = torch.zeros(5, 5, dtype=torch.float64)
    C[ONE_WAY[0], ONE_WAY[1]] = 1
    torch.testing.assert_close(layer(X, ONE_WAY), layer(X, structure=C.flatten()), rtol=1e-12, atol=0)
    assert edges_everywhere(ONE_WAY, tmp_path / "tu") == [set(map(tuple, ONE_WAY.T.tolist()))] * 3


def test_weights_make_entries_of_the_matrix() -> None:
    weights = torch.linspace(0.5, 2, MESSY.shape[1], dtype=torch.float64)
    C = torch.zeros(5, 5, dtype=torch.float64).index_put((MESSY[0], MESSY[1]), weights, accumulate=True)
    layer = layer_for("adjacency")
    torch.testing.assert_close(
        layer(X, MESSY, edge_weight=weights), layer(X, structure=C.flatten()), rtol=1e-12, atol=0
    )


def test_attributes_stay_with_their_edges() -> None:
    """Of equal edges, the first is kept with what it carries."""
    marks = torch.arange(MESSY.shape[1])[:, None]
    (graph,) = from_data_list([Data(x=X, edge_index=MESSY, edge_attr=marks, y=0)])
    assert graph.edge_attr.flatten().tolist() == [1, 3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert torch.equal(graph.edge_index, MESSY[:, graph.edge_attr.flatten()])


def test_clean_lists_are_left_as_they_are() -> None:
    assert distinct_edges(PLAIN.numpy(), 5) is None
    assert distinct_edges(PLAIN.flip(1).numpy(), 5) is None
    assert distinct_edges(torch.empty(2, 0, dtype=torch.int64).numpy(), 5) is None


def test_gradients_ignore_repeated_edges_and_loops() -> None:
    found = []
    for edges in (MESSY, PLAIN):
        layer = layer_for("adjacency")
        layer(X, edges).sum().backward()
        found.append(layer.structure_entries.grad)
    assert torch.equal(found[0], found[1])

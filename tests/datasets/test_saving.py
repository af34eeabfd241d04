from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, from_data_list, load, save
from tfgw.datasets.tu_files import open_files
from tfgw.datasets.tu_format import read_tables

WriteTables = Callable[..., Path]

ATTRIBUTES = "".join(f"{i / 7!r}, {-i}\n" for i in range(9))


@pytest.mark.parametrize("features", ["labels", "attributes", "both"])
@pytest.mark.parametrize("targets", ["graph_labels", "graph_attributes"])
def test_a_dataset_is_read_back(
    tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path, features: str, targets: str
) -> None:
    if targets == "graph_attributes":
        del tiny["graph_labels"]
        tiny["graph_attributes"] = "0.1\n1\n-2.25\n"
    dataset = load(write_folder(tiny | {"node_attributes": ATTRIBUTES}), features=features)
    again = load(save(dataset, tmp_path / "again"), features=features)
    assert (again.name, again.classes, again.encoding) == ("again", dataset.classes, dataset.encoding)
    for a, b in zip(dataset, again, strict=True):
        assert all(a[key].equal(b[key]) for key in ("x", "edge_index", "edge_attr", "y"))


def test_tables_are_read_back(tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path) -> None:
    tables = read_tables(open_files(write_folder(tiny | {"node_attributes": ATTRIBUTES})))
    again = read_tables(open_files(save(tables, str(tmp_path / "again"), name="MINE")))
    for field in ("node_counts", "edge_counts", "edges", "node_labels", "node_attributes", "edge_labels", "targets"):
        np.testing.assert_array_equal(getattr(tables, field), getattr(again, field))


def test_a_selection_without_targets_is_read_back(
    tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path
) -> None:
    dataset = load(write_folder(tiny), features="degree")
    chosen = [Data(x=graph.x, edge_index=graph.edge_index) for graph in dataset[[2, 0]]]
    unlabelled = GraphDataset.from_graphs(chosen, name="chosen", encoding=dataset.encoding)
    again = load(save(unlabelled, tmp_path / "again"), encoding=dataset.encoding)
    assert again.y is None
    assert [graph.num_nodes for graph in again] == [4, 3]
    assert again[1].x.equal(dataset[0].x)
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["again_A.txt", "again_graph_indicator.txt"]


def test_features_of_unknown_origin_are_attributes(tmp_path: Path) -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    dataset = GraphDataset.from_graphs([Data(x=torch.tensor([[0.1], [2.0]]), edge_index=edges)], name="x")
    again = load(save(dataset, tmp_path / "again"), encoding=from_data_list(list(dataset)).encoding)
    assert again.x.equal(dataset.x)


def test_graphs_without_any_edge_come_back(tmp_path: Path) -> None:
    none = torch.zeros(2, 0, dtype=torch.int64)
    graphs = [Data(x=torch.rand(n, 3), edge_index=none, y=torch.tensor([n % 2])) for n in (2, 5)]
    dataset = GraphDataset.from_graphs(graphs, name="bare", classes=(4, 9))
    again = load(save(dataset, tmp_path / "again"))
    assert again.x.equal(dataset.x)
    assert again.classes == (4, 9)
    assert [graph.num_edges for graph in again] == [0, 0]


def test_a_dataset_is_not_overwritten(tiny: dict[str, str], write_folder: WriteTables) -> None:
    folder = write_folder(tiny)
    with pytest.raises(FileExistsError, match="already contains a dataset TINY"):
        save(load(folder), folder, name="TINY")


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    x, edges = torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]])
    refused = {
        "edge_weight": (Data(x=x, edge_index=edges, edge_weight=torch.ones(2)), ()),
        "graph_labels": (Data(x=x, edge_index=edges, y=torch.tensor([0])), ("ring",)),
    }
    for name, (graph, classes) in refused.items():
        with pytest.raises(ValueError, match=f"^{name}: TU format"):
            save(GraphDataset.from_graphs([graph], name=name, classes=classes), tmp_path / name)
        assert not (tmp_path / name).exists()

"""Labels and attributes of edges: read, kept through everything that is done to graphs, and written again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tfgw.datasets import CanonicalOrder, GraphDataset, NodeEncoding, load, save
from tfgw.datasets.tu_files import open_files
from tfgw.datasets.tu_format import read_tables

WriteTables = Callable[..., Path]

ATTRIBUTES = "".join(f"{i / 7!r}, {-i}\n" for i in range(14))


@pytest.fixture
def folder(tiny: dict[str, str], write_folder: WriteTables) -> Path:
    """Edge labels 0, 1, 4 and two attributes."""
    return write_folder(tiny | {"edge_attributes": ATTRIBUTES})


def facts(dataset: GraphDataset) -> list[set[tuple[object, ...]]]:
    """For each graph, its edges as features of their ends and of themselves: the same in any order."""
    return [
        {(*map(tuple, graph.x[ends].tolist()), tuple(row)) for ends, row in zip(graph.edge_index.T, rows, strict=True)}
        for graph in dataset
        for rows in [graph.edge_attr.tolist()]
    ]


def test_columns_are_attributes_and_then_labels(folder: Path) -> None:
    dataset = load(folder)
    assert dataset.encoding.edges.vocabulary == ((0, 1, 4),)
    assert dataset.encoding.edges.num_attributes == 2
    expected = [[5 / 7, -5, 0, 0, 1], [2 / 7, -2, 0, 0, 1]]
    torch.testing.assert_close(dataset[1].edge_attr, torch.tensor(expected))


def test_edges_keep_what_they_carry(folder: Path) -> None:
    dataset = load(folder)
    for changed in (CanonicalOrder().of_dataset(dataset), dataset.map(CanonicalOrder())):
        assert facts(changed) == facts(dataset)
    assert facts(dataset[[2, 0]]) == [facts(dataset)[2], facts(dataset)[0]]
    assert facts(dataset[[2, 0]].compact()) == [facts(dataset)[2], facts(dataset)[0]]


def test_labels_are_written_as_labels(folder: Path, tmp_path: Path) -> None:
    written = read_tables(open_files(save(load(folder)[[2, 1]], tmp_path / "some")))
    tables = read_tables(open_files(folder))
    np.testing.assert_array_equal(written.edge_labels, tables.edge_labels[[6, 7, 8, 9, 10, 11, 4, 5]])
    np.testing.assert_allclose(written.edge_attributes, tables.edge_attributes[[6, 7, 8, 9, 10, 11, 4, 5]], rtol=1e-7)


def test_others_are_read_by_the_same_columns(folder: Path, tiny: dict[str, str], write_folder: WriteTables) -> None:
    encoding = NodeEncoding.from_dict(load(folder).encoding.as_dict())
    labels = tiny["edge_labels"].replace("4", "0").replace("1", "3")  # 1 becomes a label that is not known, 4 is gone
    others = write_folder(
        tiny | {"edge_attributes": ATTRIBUTES, "edge_labels": labels}, folder=folder.parent / "others"
    )
    found = load(others, encoding=encoding)[0].edge_attr[:, 2:]
    assert found.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_models_do_not_ask_for_them(folder: Path, tiny: dict[str, str], write_folder: WriteTables) -> None:
    encoding = load(folder).encoding
    del tiny["edge_labels"]
    plain = load(write_folder(tiny, folder=folder.parent / "plain"))
    assert plain.encoding == encoding
    assert "edge_attr" not in load(folder.parent / "plain", encoding=encoding)[0]


def test_an_encoding_of_an_earlier_version_has_none(folder: Path) -> None:
    entries = load(folder).encoding.as_dict()
    del entries["edges"]
    assert NodeEncoding.from_dict(entries) == load(folder).encoding
    assert "edge_attr" not in load(folder, encoding=NodeEncoding.from_dict(entries))[0]

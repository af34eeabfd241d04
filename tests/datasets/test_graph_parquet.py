"""Graphs as rows of a Parquet file: what is written is read again, and what cannot be meant is refused."""

import dataclasses
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.streams import random_trees
from tfgw.datasets import load, save
from tfgw.datasets.graph_parquet import GraphParquet, read_graph_parquet
from tfgw.datasets.graph_tables import GraphTables, concatenated

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FUZZED = int(os.environ.get("TFGW_FUZZED_FILES", "150"))


def assert_same(found: GraphTables, expected: GraphTables) -> None:
    for field in dataclasses.fields(expected):
        mine, theirs = getattr(found, field.name), getattr(expected, field.name)
        assert (mine is None) == (theirs is None), field.name
        assert mine is None or np.array_equal(mine, theirs), field.name


@pytest.mark.parametrize("text", [False, True])
def test_what_is_written_is_read_again(text: bool, tmp_path: Path) -> None:
    tables = random_trees(41)
    nodes = int(tables.node_counts.sum())
    tables = dataclasses.replace(
        tables,
        node_labels=np.array([["C", "x"], ["N", "yy"]])[np.arange(nodes) % 2] if text else tables.node_labels,
        targets=np.linspace(0, 1, 41) if text else tables.targets,
        identifiers=np.array([f"tree {number}" for number in range(41)]) if text else np.arange(41) * 7,
    )
    path = save(tables, tmp_path / "trees.parquet")
    assert_same(read_graph_parquet(path), tables)
    for size, skip in ((1, 0), (6, 5), (100, 40)):
        chunks = list(GraphParquet(path).chunks(size, skip=skip))
        assert [chunk.first for chunk in chunks] == list(range(skip, 41, size))
        assert_same(concatenated([chunk.tables() for chunk in chunks]), tables.part(skip, 41))
    assert list(GraphParquet(path).chunks(3, skip=41)) == []
    with pytest.raises(FileExistsError):
        save(tables, path)
    assert load(path).num_classes == (0 if text else 2)


def test_groups_of_rows_may_end_anywhere(tmp_path: Path) -> None:
    tables = random_trees(23)
    path = save(tables, tmp_path / "trees.parquet")
    rows = parquet.read_table(path)
    parquet.write_table(rows, tmp_path / "small.parquet", row_group_size=5)
    chunks = list(GraphParquet(tmp_path / "small.parquet").chunks(7, skip=8))
    assert [chunk.first for chunk in chunks] == [8, 15, 22]
    assert_same(concatenated([chunk.tables() for chunk in chunks]), tables.part(8, 23))


def test_edges_are_a_set(tmp_path: Path) -> None:
    rows = {"edge_index": [[[1, 0, 1, 2, 1], [0, 1, 0, 2, 2]], [[], []]], "num_nodes": [3, 1]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "set.parquet")
    found = read_graph_parquet(tmp_path / "set.parquet")
    assert found.edges.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert found.edge_counts.tolist() == [3, 0]


GOOD: dict[str, Any] = {
    "edge_index": [[[0], [1]], [[1], [0]]],
    "num_nodes": [2, 2],
    "node_attributes": [[1.0, 2.0]] * 2,
}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown node": ({"edge_index": [[[0], [1]], [[2], [0]]]}, "row 1: edge_index contains a node that does not exist"),
    "negative node": (
        {"edge_index": [[[0], [-1]], [[1], [0]]]},
        "row 0: edge_index contains a node that does not exist",
    ),
    "three lists": ({"edge_index": [[[0], [1]], [[0], [1], [2]]]}, "row 1: edge_index must be two lists"),
    "lists differ": ({"edge_index": [[[0], [1]], [[0, 1], [1]]]}, "row 1: the two lists of edge_index differ"),
    "fractions": ({"edge_index": [[[0.5], [1.0]], [[1.0], [0.0]]]}, "edge_index must contain integers"),
    "flat": ({"edge_index": [[0, 1], [1, 0]]}, "not graphs in the expected format"),
    "null": ({"edge_index": [[[0], [1]], None]}, "edge_index is missing in 1 of them"),
    "no nodes": ({"num_nodes": [2, 0], "node_attributes": [[1.0, 2.0], []]}, "row 1: the graph has no nodes"),
    "another number of nodes": ({"num_nodes": [2, 3]}, "row 1: num_nodes and node_attributes have different numbers"),
    "not finite": ({"node_attributes": [[1.0, 2.0], [1.0, float("nan")]]}, "row 1: .* not finite"),
    "text as attributes": ({"node_attributes": [["a", "b"]] * 2}, "node_attributes must be numbers"),
    "fractions as labels": ({"node_labels": [[0.5, 1.5]] * 2}, "node_labels must be integers or text"),
    "target not finite": ({"target": [1.0, float("inf")]}, "row 1: the target is not a finite number"),
    "list as id": ({"id": [[1], [2]]}, "expected numbers or text, found list"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_row(name: str, tmp_path: Path) -> None:
    changes, message = BAD[name]
    parquet.write_table(pyarrow.table(GOOD | changes), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=message):
        read_graph_parquet(tmp_path / "bad.parquet")


def test_nodes_must_be_counted(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"edge_index": GOOD["edge_index"]}), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match="no column num_nodes, node_labels or node_attributes"):
        read_graph_parquet(tmp_path / "bad.parquet")


def test_corrupted_files_are_refused_or_read(tmp_path: Path) -> None:
    """One line of error, or graphs that fit the format; TFGW_FUZZED_FILES says how many."""
    rng = random.Random(2)
    whole = save(random_trees(9), tmp_path / "trees.parquet").read_bytes()
    path = tmp_path / "fuzzed.parquet"
    refused = 0
    for _ in range(FUZZED):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            start = rng.randrange(len(data))
            if rng.random() < 0.7:
                data[start] = rng.randrange(256)
            elif rng.random() < 0.5:
                del data[start : start + rng.randint(1, 20)]
            else:
                del data[start:]
            data = data or bytearray(b"P")
        path.write_bytes(data)
        refused += not is_read(path)
    assert refused > FUZZED // 4


def is_read(path: Path) -> bool:
    try:
        tables = read_graph_parquet(path)
    except ValueError as error:
        message = str(error)
    else:
        sizes = np.repeat(tables.node_counts, tables.edge_counts)
        assert ((tables.edges >= 0) & (tables.edges < sizes)).all()
        return True
    assert "\n" not in message
    return False

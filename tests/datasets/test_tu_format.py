import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_tu_data
from torch_geometric.utils import coalesce

from tfgw.datasets import load
from tfgw.datasets.tu_files import open_files
from tfgw.datasets.tu_format import read_tables

WriteTables = Callable[..., Path]


def test_known_answer(tiny: dict[str, str], write_folder: WriteTables) -> None:
    tables = read_tables(open_files(write_folder(tiny)))
    path, edge, triangle = (
        [[0, 1, 1, 2], [1, 0, 2, 1]],
        [[0, 1], [1, 0]],
        [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]],
    )
    np.testing.assert_array_equal(tables.node_counts, [3, 2, 4])
    np.testing.assert_array_equal(tables.edge_counts, [4, 2, 6])
    np.testing.assert_array_equal(tables.edges, np.hstack([path, edge, triangle]))
    np.testing.assert_array_equal(tables.targets, [5, -2, 5])
    np.testing.assert_array_equal(tables.node_labels, [[7], [7], [3], [3], [9], [7], [7], [7], [3]])
    assert tables.node_attributes is None


def test_edge_labels_follow_their_edges_and_the_first_listing_wins(
    tiny: dict[str, str], write_folder: WriteTables
) -> None:
    tables = read_tables(open_files(write_folder(tiny)))
    np.testing.assert_array_equal(tables.edge_labels[:, 0], [0, 0, 1, 1, 4, 4, 0, 4, 0, 1, 4, 1])


def test_agrees_with_pytorch_geometric(tiny: dict[str, str], write_folder: WriteTables) -> None:
    del tiny["edge_labels"]  # PyTorch Geometric adds up the labels of an edge that is listed twice
    folder = write_folder(tiny)
    theirs, slices, _ = read_tu_data(str(folder), "TINY")
    ours = load(folder)
    for number, graph in enumerate(ours):
        start, end = slices["edge_index"][number : number + 2]
        torch.testing.assert_close(graph.edge_index, coalesce(theirs.edge_index[:, start:end]))
    torch.testing.assert_close(ours.x, theirs.x[:, [3 - 3, 7 - 3, 9 - 3]])  # theirs has unused columns


def test_only_the_mandatory_files(tiny: dict[str, str], write_zip: WriteTables) -> None:
    dataset = load(write_zip({key: tiny[key] for key in ("A", "graph_indicator", "graph_labels")}))
    assert dataset.classes == (-2, 5)
    assert dataset.y.tolist() == [1, 0, 1]
    assert set(dataset[0].keys()) == {"x", "edge_index", "y"}


def test_regression_targets(tiny: dict[str, str], write_folder: WriteTables) -> None:
    del tiny["graph_labels"]
    dataset = load(write_folder(tiny | {"graph_attributes": "0.5\n1\n-2.25\n"}))
    assert dataset.classes == ()
    assert dataset.num_classes == 0
    torch.testing.assert_close(dataset.y, torch.tensor([0.5, 1.0, -2.25]))
    assert dataset[1].y.shape == (1,)


def test_several_regression_targets(tiny: dict[str, str], write_folder: WriteTables) -> None:
    del tiny["graph_labels"]
    dataset = load(write_folder(tiny | {"graph_attributes": "0.5, 1\n1, 2\n-2.25, 3\n"}))
    torch.testing.assert_close(dataset[2].y, torch.tensor([[-2.25, 3.0]]))


def test_edge_attributes_come_before_edge_labels(tiny: dict[str, str], write_folder: WriteTables) -> None:
    dataset = load(write_folder(tiny | {"edge_attributes": "".join(f"{i}.5\n" for i in range(14))}))
    torch.testing.assert_close(dataset[1].edge_attr, torch.tensor([[5.5, 0, 0, 1], [2.5, 0, 0, 1]]))


@pytest.mark.parametrize("missing", ["A", "graph_indicator", "graph_labels"])
def test_missing_file_is_named(tiny: dict[str, str], write_folder: WriteTables, missing: str) -> None:
    folder = write_folder(tiny)
    (folder / f"TINY_{missing}.txt").unlink()
    with pytest.raises(
        (ValueError, FileNotFoundError), match=f"TINY_{missing}.txt: the file is missing|no file NAME_A"
    ):
        load(folder)


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("A", "1, 2\n2, 10\n", "TINY_A.txt, line 2: node 10 does not exist; nodes are numbered 1 to 9"),
        ("A", "0, 2\n", "TINY_A.txt, line 1: node 0 does not exist"),
        (
            "A",
            "1, 2\n2, 1\n3, 4\n",
            "TINY_A.txt, line 3: the edge from node 3 to node 4 connects two graphs, 1 and 2",
        ),
        ("A", "1, 2\n2, one\n", "TINY_A.txt, line 2: expected 2 comma-separated integers, found '2, one'"),
        ("A", "1 2,\n2, 1\n", "TINY_A.txt, line 1: expected 2 comma-separated integers, found '1 2,'"),
        ("A", "1, 2\n2 1 3,\n, 1\n", "TINY_A.txt, line 2: expected 2 comma-separated integers, found '2 1 3,'"),
        ("A", "1, 2\n2, 1, 3\n1\n", "TINY_A.txt, line 2: expected 2 comma-separated integers, found '2, 1, 3'"),
        ("graph_indicator", "", "TINY_graph_indicator.txt: the file is empty"),
        ("graph_indicator", "1\n1\n3\n", "TINY_graph_indicator.txt, line 3: graph 3 after graph 1"),
        ("graph_indicator", "1\n2\n1\n", "TINY_graph_indicator.txt, line 3: graph 1 after graph 2"),
        ("graph_indicator", "0\n1\n3\n", "TINY_graph_indicator.txt, line 1: graph 0 after the start"),
        ("graph_indicator", "2\n2\n", "TINY_graph_indicator.txt, line 1: graph 2 after the start"),
        ("graph_labels", "5\n5\n", "TINY_graph_labels.txt: has 2 lines, but the dataset has 3 graphs"),
        ("graph_labels", "5\n5\nred\n", "TINY_graph_labels.txt, line 3: expected one integer, found 'red'"),
        ("graph_labels", "5, 1\n5, 1\n5, 1\n", "TINY_graph_labels.txt, line 1: expected one integer"),
        ("node_labels", "1\n" * 10, "TINY_node_labels.txt: has 10 lines, but the dataset has 9 nodes"),
        ("node_attributes", "1.5\n" * 8, "TINY_node_attributes.txt: has 8 lines, but the dataset has 9 nodes"),
        (
            "node_attributes",
            "1, 2\n1\n",
            "TINY_node_attributes.txt, line 2: expected 2 comma-separated finite numbers",
        ),
        ("edge_labels", "1\n" * 13 + f"{2**63}\n", "TINY_edge_labels.txt, line 14: integers have at most 64 bits"),
        ("node_labels", "1\n" * 8 + f"{-(2**63) - 1}\n", "TINY_node_labels.txt, line 9: integers have at most 64 bits"),
        ("graph_labels", f"1\n2\n{10**30}\n", "TINY_graph_labels.txt, line 3: integers have at most 64 bits"),
        ("edge_labels", "1\n" * 13, "TINY_edge_labels.txt: has 13 lines, but the dataset has 14 edges"),
    ],
)
def test_malformed_file_gives_one_clear_sentence(
    tiny: dict[str, str],
    write_folder: WriteTables,
    write_zip: WriteTables,
    table: str,
    text: str,
    message: str,
) -> None:
    for path in (write_folder(tiny | {table: text}), write_zip(tiny | {table: text})):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            load(path)
        assert str(path) in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_labels_of_64_bits_are_exact(tiny: dict[str, str], write_folder: WriteTables) -> None:
    largest, smallest = 2**63 - 1, -(2**63)
    dataset = load(write_folder(tiny | {"graph_labels": f"{largest}\n{largest - 1}\n{smallest}\n"}))
    assert [dataset.classes[y] for y in dataset.y] == [largest, largest - 1, smallest]


def test_graphs_without_any_edge(tiny: dict[str, str], write_folder: WriteTables, write_zip: WriteTables) -> None:
    del tiny["node_labels"]
    for path in (write_folder(tiny | {"A": "", "edge_labels": "\n"}), write_zip(tiny | {"A": "", "edge_labels": ""})):
        dataset = load(path)
        assert [graph.num_nodes for graph in dataset] == [3, 2, 4]
        assert [tuple(graph.edge_index.shape) for graph in dataset] == [(2, 0)] * 3
        assert dataset.x.tolist() == [[1.0]] * 9  # the degree 0
    with pytest.raises(ValueError, match=r"TINY_edge_labels\.txt: has 14 lines, but the dataset has 0 edges"):
        load(write_folder(tiny | {"A": ""}))

import json
import re
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch

from tfgw.datasets import NodeEncoding, from_networkx, load
from tfgw.datasets.graph_tables import GraphTables

WriteTables = Callable[..., Path]

KINDS = ("labels", "attributes", "both", "degree", "degree_scalar", "constant")
ATTRIBUTES = np.arange(27.0).reshape(9, 3) / 7


def tables(labels: np.ndarray | None = None, attributes: np.ndarray | None = None, leaves: int = 3) -> GraphTables:
    """A star with the given leaves, and a path with the other nodes of nine."""
    star = [(0, leaf) for leaf in range(1, leaves + 1)]
    path = [(node, node + 1) for node in range(9 - leaves - 2)]
    edges = [[*both, *((b, a) for a, b in both)] for both in (star, path)]
    return GraphTables(
        node_counts=np.array([leaves + 1, 8 - leaves]),
        edge_counts=np.array([len(edges[0]), len(edges[1])]),
        edges=np.array(edges[0] + edges[1]).T,
        node_labels=labels,
        node_attributes=attributes,
    )


LABELS = np.array([[7, 0], [7, 1], [3, 0], [3, 2], [9, 0], [7, 1], [7, 2], [7, 0], [3, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_encoded_as_in_the_whole(kind: str) -> None:
    encoding = NodeEncoding.fit(tables(LABELS, ATTRIBUTES), features=kind)
    whole = encoding.encode(tables(LABELS, ATTRIBUTES))
    path = GraphTables(
        node_counts=np.array([5]),
        edge_counts=np.array([8]),
        edges=tables().edges[:, 6:],
        node_labels=LABELS[4:],
        node_attributes=ATTRIBUTES[4:],
    )
    assert encoding.encode(path).x.equal(whole.x[4:])
    assert encoding.encode(path).unseen is None


@pytest.mark.parametrize("kind", KINDS)
def test_it_survives_json(kind: str) -> None:
    encoding = NodeEncoding.fit(tables(LABELS, ATTRIBUTES), features=kind)
    assert NodeEncoding.from_dict(json.loads(json.dumps(encoding.as_dict()))) == encoding


def test_both_has_attributes_then_labels() -> None:
    encoding = NodeEncoding.fit(tables(LABELS, ATTRIBUTES), features="both")
    assert encoding.vocabulary == ((3, 7, 9), (0, 1, 2))
    x = encoding.encode(tables(LABELS, ATTRIBUTES)).x
    torch.testing.assert_close(x[:, :3], torch.tensor(ATTRIBUTES, dtype=x.dtype))
    assert x[3, 3:].tolist() == [1, 0, 0, 0, 0, 1]
    assert str(encoding) == "3 node attributes and 6 one-hot node labels"


def test_labels_and_attributes_are_told_again() -> None:
    encoding = NodeEncoding.fit(tables(LABELS, ATTRIBUTES), features="both")
    labels, attributes = encoding.decode(encoding.encode(tables(LABELS, ATTRIBUTES)).x.double().numpy())
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_allclose(attributes, ATTRIBUTES, rtol=1e-7)
    with pytest.raises(ValueError, match="not one-hot"):
        encoding.decode(np.zeros((2, 9)))


def test_an_unseen_label_has_zeros_in_its_own_columns_and_is_reported() -> None:
    encoding = NodeEncoding.fit(tables(LABELS))
    other = LABELS.copy()
    other[[1, 3], 0] = 5, 11
    other[4, 1] = -2
    x, unseen = encoding.encode(tables(other))
    assert x[1].tolist() == [0, 0, 0, 0, 1, 0]
    assert x[3].tolist() == [0, 0, 0, 0, 0, 1]
    assert x[4].tolist() == [0, 0, 1, 0, 0, 0]
    assert x[[0, 2, 5, 6, 7, 8]].equal(encoding.encode(tables(LABELS)).x[[0, 2, 5, 6, 7, 8]])
    assert str(unseen) == "3 of 9 nodes (in 2 graphs) have a label unknown to the model: -2, 5, 11"


def test_a_degree_above_those_seen_is_unseen_unless_it_is_capped() -> None:
    encoding = NodeEncoding.fit(tables(leaves=3))
    x, unseen = encoding.encode(tables(leaves=6))
    assert x[0].tolist() == [0, 0, 0, 0]
    assert str(unseen) == "1 of 9 nodes (in 1 graph) have a degree unknown to the model: 6"
    x, unseen = NodeEncoding.fit(tables(leaves=3), max_degree=3).encode(tables(leaves=6))
    assert x[0].tolist() == [0, 0, 0, 1]
    assert unseen is None


def test_a_vocabulary_that_hardly_overlaps_is_refused() -> None:
    encoding = NodeEncoding.fit(tables(LABELS))
    half = LABELS.copy()
    half[:4, 0] += 100
    assert encoding.encode(tables(half)).unseen.nodes == 4
    half[4, 0] += 100
    with pytest.raises(
        ValueError, match=r"5 of 9 nodes .* have a label unknown to the model: 103, 107, 109; the graphs"
    ):
        encoding.encode(tables(half))


@pytest.mark.parametrize(
    ("kind", "other", "message"),
    [
        ("labels", tables(), "the model requires node labels, but the graphs have none"),
        (
            "labels",
            tables(attributes=ATTRIBUTES),
            "the model requires node labels, but the graphs have only attributes",
        ),
        ("both", tables(LABELS), "the model requires node attributes, but the graphs have only labels"),
        (
            "attributes",
            tables(attributes=ATTRIBUTES[:, :2]),
            "the model requires 3 columns of node attributes, but the graphs have 2",
        ),
        ("labels", tables(LABELS[:, :1]), "the model requires 2 columns of node labels, but the graphs have 1"),
    ],
)
def test_features_of_another_kind_are_refused(kind: str, other: GraphTables, message: str) -> None:
    encoding = NodeEncoding.fit(tables(LABELS, ATTRIBUTES), features=kind)
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        encoding.encode(other)


def test_load_reads_through_an_encoding(tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path) -> None:
    known = load(write_folder(tiny))
    del tiny["graph_labels"]
    others = load(
        write_folder(tiny | {"node_labels": "9\n" * 8 + "3\n"}, folder=tmp_path / "o"), encoding=known.encoding
    )
    assert others.y is None
    assert others.encoding == known.encoding
    assert others.x.tolist() == [[0, 0, 1]] * 8 + [[1, 0, 0]]


def test_load_warns_of_unseen_labels(tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path) -> None:
    known = load(write_folder(tiny))
    assert known.unseen is None
    folder = write_folder(tiny | {"node_labels": "9\n" * 8 + "4\n"}, folder=tmp_path / "others")
    with pytest.warns(UserWarning, match=r"TINY: 1 of 9 nodes \(in 1 graph\) have a label unknown to the model: 4"):
        others = load(folder, encoding=known.encoding)
    assert (others.unseen.nodes, others.unseen.graphs, others.unseen.labels) == (1, 1, (4,))
    with pytest.raises(ValueError, match="TINY: 9 of 9 nodes"):
        load(write_folder(tiny | {"node_labels": "1\n" * 9}, folder=tmp_path / "none"), encoding=known.encoding)


def test_networkx_labels_keep_their_names() -> None:
    graph, other = networkx.path_graph(3), networkx.path_graph(2)
    networkx.set_node_attributes(graph, dict(enumerate(["N", "C", "O"])), "atom")
    networkx.set_node_attributes(other, dict(enumerate(["O", "N"])), "atom")
    known = from_networkx([graph], node_labels="atom")
    assert known.encoding.vocabulary == (("C", "N", "O"),)
    assert from_networkx([other], node_labels="atom", encoding=known.encoding).x.tolist() == [[0, 0, 1], [0, 1, 0]]


def test_text_is_no_number() -> None:
    encoding = NodeEncoding(features="labels", vocabulary=((3, 7, 9),))
    with pytest.raises(ValueError, match="9 of 9 nodes"):
        encoding.encode(tables(np.array([["C"]] * 9)))

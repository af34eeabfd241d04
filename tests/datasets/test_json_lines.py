"""Graphs as JSON lines: what is read, and what is refused with the number of the line."""

import gzip
import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from tfgw.datasets import GraphDataset, from_networkx, load
from tfgw.datasets.json_lines import JsonLines, read_json_lines

FUZZED = int(os.environ.get("TFGW_FUZZED_FILES", "150"))


def entry(size: int, **changes: Any) -> dict[str, Any]:
    """A path of ``size`` nodes with labels, attributes, weights, a target and an identifier."""
    return {
        "id": f"path-{size}",
        "target": size % 2,
        "nodes": [{"id": i, "label": i % 3, "attributes": [0.5 * i, -1.0]} for i in range(size)],
        "edges": [{"source": i, "target": i + 1, "label": "ab"[i % 2], "weight": 1 + i} for i in range(size - 1)],
    } | changes


def write(path: Path, *entries: Any) -> Path:
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in entries)
    path.write_text(text)
    return path


def test_known_tables(tmp_path: Path) -> None:
    tables = read_json_lines(write(tmp_path / "paths.jsonl", entry(3), "", entry(2), "  "))
    assert tables.node_counts.tolist() == [3, 2]
    assert tables.edge_counts.tolist() == [4, 2]
    assert tables.edges.tolist() == [[0, 1, 1, 2, 0, 1], [1, 0, 2, 1, 1, 0]]
    assert tables.node_labels is not None
    assert tables.node_labels[:, 0].tolist() == [0, 1, 2, 0, 1]
    assert tables.node_attributes is not None
    assert tables.node_attributes.tolist() == [[0, -1], [0.5, -1], [1, -1], [0, -1], [0.5, -1]]
    assert tables.edge_labels is not None
    assert tables.edge_labels[:, 0].tolist() == ["a", "a", "b", "b", "a", "a"]
    assert tables.edge_weights is not None
    assert tables.edge_weights.tolist() == [1, 1, 2, 2, 1, 1]
    assert tables.targets is not None
    assert tables.targets.tolist() == [1, 0]
    assert tables.identifiers is not None
    assert tables.identifiers.tolist() == ["path-3", "path-2"]


def test_chunks_are_the_file_cut_in_pieces(tmp_path: Path) -> None:
    path = write(tmp_path / "paths.jsonl", entry(2), "", *(entry(nodes) for nodes in (5, 3, 4, 7)))
    source = JsonLines(path)
    assert source.count() == 5
    found = [(chunk.first, chunk.tables().node_counts.tolist()) for chunk in source.chunks(2, skip=1)]
    assert found == [(1, [5, 3]), (3, [4, 7])]
    assert [chunk.first for chunk in source.chunks(3)] == [0, 3]
    assert list(source.chunks(3, skip=5)) == []


def test_packed_files_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "paths.jsonl", entry(3), entry(2))
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert JsonLines(packed).name == "packed"
    assert np.array_equal(read_json_lines(packed).edges, read_json_lines(path).edges)
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(ValueError, match="not a readable gzip file"):
        read_json_lines(packed)


def test_what_networkx_writes_is_read_as_its_graph(tmp_path: Path) -> None:
    graphs = [nx.cycle_graph(5), nx.star_graph(3), nx.DiGraph([(0, 1), (1, 2)])]
    for number, graph in enumerate(graphs):
        graph.graph |= {"target": number / 2, "id": number}
        for node, attributes in graph.nodes(data=True):
            attributes["label"] = "even" if node % 2 == 0 else "odd"
    lines = [nx.node_link_data(graph, edges="edges") for graph in graphs]
    found = load(write(tmp_path / "nx.jsonl", *lines))
    expected = from_networkx(graphs, y="target", node_labels="label")
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.equal(mine.edge_index, theirs.edge_index)
        assert torch.equal(mine.x, theirs.x)
        assert torch.equal(mine.y, theirs.y)
    assert found.identifiers == [0, 1, 2]
    old = [nx.node_link_data(graph, edges="links") for graph in graphs]
    assert torch.equal(load(write(tmp_path / "old.jsonl", *old))[1].edge_index, expected[1].edge_index)


def test_edges_are_a_set(tmp_path: Path) -> None:
    """Both directions of an undirected edge, an edge again, and loops; the first label counts."""
    ends = [(1, 0, "x"), (0, 1, "y"), (2, 2, "y"), (1, 2, "y"), (1, 0, "y")]
    edges = [{"source": source, "target": target, "label": label} for source, target, label in ends]
    nodes = [{"id": name} for name in range(3)]
    tables = read_json_lines(write(tmp_path / "set.jsonl", {"nodes": nodes, "edges": edges}))
    assert tables.edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert tables.edge_labels is not None
    assert tables.edge_labels[:, 0].tolist() == ["x", "x", "y", "y"]
    directed = read_json_lines(write(tmp_path / "one.jsonl", {"nodes": nodes, "edges": edges, "directed": True}))
    assert directed.edges.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert directed.edge_labels is not None
    assert directed.edge_labels[:, 0].tolist() == ["y", "x", "y"]


def test_nodes_without_names_are_numbered(tmp_path: Path) -> None:
    tables = read_json_lines(
        write(tmp_path / "n.jsonl", {"nodes": [{}, {}, {}], "edges": [{"source": 2, "target": 0}]})
    )
    assert tables.edges.tolist() == [[0, 2], [2, 0]]


def test_numbers_with_and_without_fraction_are_values(tmp_path: Path) -> None:
    path = write(tmp_path / "values.jsonl", *(entry(3, target=value) for value in (1, 2.5, 3)))
    assert load(path).y.tolist() == [1.0, 2.5, 3.0]
    assert load(path).classes == ()
    several = write(tmp_path / "several.jsonl", entry(2, target=[1, 2]), entry(3, target=[3, 4.5]))
    assert load(several).y.tolist() == [[1, 2], [3, 4.5]]


BAD: dict[str, tuple[Any, str]] = {
    "cut": ('{"nodes": [{"id": 0}', "not JSON"),
    "no object": ("[1, 2]", "the graph is not an object"),
    "no nodes": (entry(2, nodes=[]), '"nodes" must be a list of at least one'),
    "node no object": (entry(2, nodes=[1, 2]), '"nodes" has an entry that is not an object'),
    "no edges": ({"nodes": [{}]}, '"edges" .* must be a list'),
    "edges no list": (entry(2, edges={"a": 1}), '"edges" .* must be a list'),
    "same names": (entry(2, nodes=[{"id": 4}, {"id": 4}], edges=[]), 'two nodes have the same "id"'),
    "fraction as name": (entry(2, nodes=[{"id": 0.5}, {"id": 1}], edges=[]), '"id" of a node must be'),
    "list as name": (entry(2, nodes=[{"id": [0]}, {"id": 1}], edges=[]), '"id" of a node'),
    "unknown end": (entry(2, edges=[{"source": 0, "target": 9}]), "an edge ends at 9, which is not a node"),
    "no end": (entry(2, edges=[{"source": 0}]), 'an edge has no "target"'),
    "NaN": ('{"nodes": [{"attributes": NaN}]}', "NaN is not a finite number"),
    "overflow": ('{"nodes": [{"attributes": 1e999}], "edges": []}', "must be a finite number"),
    "large integer": (entry(2, target=2**70), "at most 64 bits"),
    "thousands of digits": ('{"nodes": [{"label": ' + "1" * 5000 + "}]}", "."),
    "true as label": (entry(2, nodes=[{"label": True}, {"label": 1}], edges=[]), "must be an integer .* or text"),
    "label of one node": (entry(2, nodes=[{"label": 1}, {}], edges=[]), 'node 1 has no "label"'),
    "attributes differ": (entry(2, nodes=[{"attributes": [1]}, {"attributes": [1, 2]}], edges=[]), "has 2 values"),
    "text as attribute": (entry(2, nodes=[{"attributes": "a"}], edges=[]), "must be a finite number"),
    "two weights": (
        entry(2, edges=[{"source": a, "target": 1 - a, "label": "a", "weight": 1 + a} for a in (0, 1)]),
        "between nodes 0 and 1 has two different weights",
    ),
    "no target": ({key: value for key, value in entry(2).items() if key != "target"}, "has no target, unlike"),
    "text among numbers": (entry(2, target="a"), "target: mixes numbers and text"),
    "number among text": (entry(2, id=7), "id: mixes integers and text"),
    "no weights": (entry(2, edges=[{"source": 0, "target": 1, "label": "a"}]), "has 0 edge weights per edge"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "empty list": (entry(2, target=[]), "target is an empty list"),
    "directed": (entry(2, directed="no"), '"directed" must be true or false'),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_line(name: str, tmp_path: Path) -> None:
    bad, message = BAD[name]
    with pytest.raises(ValueError, match=rf"bad\.jsonl, line 3: .*{message}"):
        read_json_lines(write(tmp_path / "bad.jsonl", entry(4), "", bad, entry(5)))


def test_other_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"empty\.jsonl: the file is empty"):
        read_json_lines(write(tmp_path / "empty.jsonl", "", ""))
    (tmp_path / "bytes.jsonl").write_bytes(b'{"nodes": "\xff"}\n')
    with pytest.raises(ValueError, match=r"bytes\.jsonl, line 1: not UTF-8 text"):
        read_json_lines(tmp_path / "bytes.jsonl")
    unlabelled = write(tmp_path / "none.jsonl", {"nodes": [{}], "edges": []})
    with pytest.raises(ValueError, match='the graphs have no "target"'):
        load(unlabelled)


def corrupted(text: bytes, rng: random.Random) -> bytes:
    """The text with bytes changed, cut out, doubled, or swapped for what a parser may stumble over."""
    data = bytearray(text)
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data))
        stop = min(len(data), start + rng.randint(1, 30))
        kind = rng.randrange(5)
        if kind == 0:
            data[start] = rng.randrange(256)
        elif kind == 1:
            del data[start:stop]
        elif kind == 2:
            data[start:start] = data[start:stop]
        elif kind == 3:
            words = [
                b"null",
                b"-1",
                b"1e400",
                b"[]",
                b"{}",
                b"true",
                b'"x"',
                b"NaN",
                b"99999999999999999999",
                b"\n",
                b"0.5",
            ]
            data[start:stop] = rng.choice(words)
        else:
            del data[start:]
        data = data or bytearray(b"\n")
    return bytes(data)


@pytest.mark.parametrize("packed", [False, True])
def test_corrupted_files_are_refused_or_read(packed: bool, tmp_path: Path) -> None:
    """One line of error that names the file, or graphs that fit the format; TFGW_FUZZED_FILES says how many."""
    rng = random.Random(5)
    text = "".join(json.dumps(entry(nodes, target=nodes / 2)) + "\n" for nodes in (3, 5, 2, 4)).encode()
    text = gzip.compress(text) if packed else text
    path = tmp_path / ("fuzzed.jsonl.gz" if packed else "fuzzed.jsonl")
    refused = 0
    for _ in range(FUZZED):
        content = corrupted(text, rng)
        path.write_bytes(content)
        dataset = load_or_refuse(path)
        refused += dataset is None
        if dataset is not None and not packed:
            listed = [json.loads(line) for line in content.decode("utf-8-sig").split("\n") if line.strip()]
            assert [graph.num_nodes for graph in dataset] == [len(one["nodes"]) for one in listed]
            for graph, one in zip(dataset, listed, strict=True):
                assert_same_edges(graph.edge_index, one)
    assert FUZZED // 4 < refused < FUZZED + packed  # hardly a change passes the checksum of a packed file


def load_or_refuse(path: Path) -> GraphDataset | None:
    """The graphs; nothing if they are refused in one line that names the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return load(path)
    except ValueError as error:
        message = str(error)
    assert "\n" not in message
    assert "fuzzed" in message
    return None


def assert_same_edges(edge_index: torch.Tensor, listed: dict[str, Any]) -> None:
    graph = nx.node_link_graph({"multigraph": False} | listed, edges="edges" if "edges" in listed else "links")
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    names = list(graph)
    expected = {(names.index(a), names.index(b)) for a, b in graph.to_directed().edges}
    assert set(map(tuple, edge_index.T.tolist())) == expected

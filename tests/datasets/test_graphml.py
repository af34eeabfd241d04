"""Folders of GraphML files, written by networkx."""

from pathlib import Path

import networkx as nx
import pytest

from tfgw.datasets import load


def write(folder: Path, count: int = 5, *, targets: bool = True) -> Path:
    """Paths of 2 nodes and more; names are numbered such that their order is that of the sizes."""
    folder.mkdir()
    for number in range(count):
        graph = nx.path_graph(number + 2)
        for node in graph:
            graph.nodes[node].update(label="CN"[node % 2], charge=node / 4, alpha=node, note="ignored")
        for source, target in graph.edges:
            graph.edges[source, target].update(label="s", weight=0.5 + source)
        if targets:
            graph.graph["target"] = ["odd", "even"][number % 2]
        nx.write_graphml(graph, folder / f"g{number}.graphml")
    return folder


def test_what_graphs_say_about_themselves(tmp_path: Path) -> None:
    dataset = load(write(tmp_path / "mine"))
    assert (dataset.name, dataset.classes, dataset.identifiers) == (
        "mine",
        ("even", "odd"),
        [f"g{i}" for i in range(5)],
    )
    assert str(dataset.encoding) == "2 node attributes and 2 one-hot node labels"
    assert dataset[1].x.tolist() == [[0, 0, 1, 0], [1, 0.25, 0, 1], [2, 0.5, 1, 0]]  # alpha, charge, C, N
    assert dataset[1].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset[1].edge_weight.tolist() == [0.5, 0.5, 1.5, 1.5]
    assert dataset[1].edge_attr.tolist() == [[1.0]] * 4


def test_targets_in_a_file_of_their_own(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", 3)
    (folder / "labels.csv").write_text("target,file\n0.5,g1.graphml\n2,g0\n-1,g2\n")
    assert load(folder).y.tolist() == [2.0, 0.5, -1.0]
    (folder / "labels.csv").write_text("file,target\ng0,1\ng1,1\n")
    with pytest.raises(ValueError, match=r"labels\.csv: has no row for g2\.graphml"):
        load(folder)


def test_graphs_without_targets_are_for_models_only(tmp_path: Path) -> None:
    encoding = load(write(tmp_path / "mine")).encoding
    bare = write(tmp_path / "bare", 2, targets=False)
    assert load(bare, encoding=encoding).y is None
    with pytest.raises(ValueError, match="bare: the graphs have no target"):
        load(bare)


def test_errors_name_the_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", 3)
    path = folder / "g1.graphml"
    text = path.read_text()
    for wrong, message in (
        (text[: len(text) // 2], "not a readable GraphML file"),
        ("", "not a readable GraphML file"),
        (text.replace(">0.25<", ">nan<"), '"attributes" of node 1 must be a finite number'),
        (text.replace(">0.25<", ">x<"), "not a readable GraphML file"),
    ):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=rf"g1\.graphml: .*{message}"):
            load(folder)

"""Memory that a file's content asks for is refused before it is taken."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import load
from tfgw.datasets.limits import VARIABLE, check_array
from tfgw.datasets.structure import shortest_paths
from tfgw.datasets.tu_files import open_files
from tfgw.datasets.tu_format import read_tables
from tfgw.nn import TFGWConfig, sample_templates
from tfgw.train import TrainConfig, build_tfgw
from tfgw.train.metrics import classification_metrics

WriteTables = Callable[..., Path]


def many_labels(nodes: int, *, of: str) -> dict[str, str]:
    """Two graphs, a path each, where every node or edge has a label of its own."""
    half = nodes // 2
    edges = [(i, i + 1) for i in range(1, nodes) if i != half]
    return {
        "A": "".join(f"{a}, {b}\n{b}, {a}\n" for a, b in edges),
        "graph_indicator": "1\n" * half + "2\n" * (nodes - half),
        "graph_labels": "0\n1\n",
        f"{of}_labels": "".join(f"{i}\n" for i in range(nodes if of == "node" else 2 * len(edges))),
    }


def test_one_hot_labels_of_a_small_archive(write_zip: WriteTables) -> None:
    archive = write_zip(many_labels(20_000, of="node"))
    assert archive.stat().st_size < 200_000
    with pytest.raises(ValueError, match=r"TINY: features 'labels' of nodes: 20,000 × 20,000 numbers take 1\.5 GiB"):
        load(archive)
    assert load(archive, features="degree").x.shape == (20_000, 3)


def test_one_hot_labels_of_edges(write_zip: WriteTables) -> None:
    with pytest.raises(ValueError, match=r"one-hot labels of edges: .* remove the file of edge labels"):
        load(write_zip(many_labels(10_000, of="edge")))


def test_the_limit_is_exact_and_can_be_moved(
    write_folder: WriteTables, tiny: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tiny)
    monkeypatch.setenv(VARIABLE, str(14 * 2 * 8 / 2**30))  # the edges, as they are read
    load(folder)
    monkeypatch.setenv(VARIABLE, str((14 * 2 * 8 - 1) / 2**30))
    with pytest.raises(ValueError, match=re.escape("TINY_A.txt: 14 × 2 numbers take")):
        read_tables(open_files(folder))
    monkeypatch.setenv(VARIABLE, str((9 * 3 * 4 - 1) / 2**30))
    with pytest.raises(ValueError, match=f"features 'labels' of nodes: 9 × 3 numbers .*{VARIABLE}"):
        load(folder)


@pytest.mark.parametrize("value", ["much", "0", "-1", "nan"])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ValueError, match=f"^{VARIABLE}={value!r}: must be a positive number"):
        check_array(1, itemsize=1, what="", instead="")


def test_squares_of_a_large_graph() -> None:
    nodes, none = 100_000, torch.zeros(2, 0, dtype=torch.int64)
    with pytest.raises(ValueError, match="shortest paths of a graph: 100,000 × 100,000"):
        shortest_paths(none, nodes)
    config = TFGWConfig(in_channels=1, out_channels=2, num_templates=4, template_nodes=nodes)
    with pytest.raises(ValueError, match=r"templates: 4 × 100,000 × 100,000 .* fewer templates"):
        build_tfgw([], TrainConfig(), architecture=config)  # type: ignore[arg-type]
    wide = TFGWConfig(in_channels=3, out_channels=2, num_templates=40, template_nodes=20, num_layers=5, width=10**6)
    with pytest.raises(ValueError, match="templates: 40 × 20 × 5,000,003"):
        build_tfgw([], TrainConfig(), architecture=wide)  # type: ignore[arg-type]
    weighted = Data(x=torch.zeros(nodes, 1), edge_index=none, edge_weight=torch.zeros(0))
    with pytest.raises(ValueError, match="structure of a graph to draw from: 100,000 × 100,000"):
        sample_templates([weighted], num_templates=1, template_nodes=3)


def test_classes_without_number() -> None:
    with pytest.raises(ValueError, match="confusion matrix: 60,000 × 60,000"):
        classification_metrics(torch.tensor([0]).numpy(), torch.zeros(1, 60_000).numpy())


@pytest.mark.parametrize("key", ["label", "target", "id"])
def test_one_long_text_among_many_short_ones(key: str, tmp_path: Path) -> None:
    """Each row of an array of text has room for the longest."""
    path, count = tmp_path / "long.jsonl", 2000
    values = ["a" * (150_000 if number == 7 else 1) for number in range(count)]
    if key == "label":
        graphs = [{"target": 1, "nodes": [{"label": value} for value in values], "edges": []}]
    else:
        graphs = [{"target": 1, "nodes": [{}], "edges": []} | {key: value} for value in values]
    path.write_text("".join(json.dumps(graph) + "\n" for graph in graphs))
    with pytest.raises(ValueError, match=f"long.jsonl.*{key}.*2,000 × 1 × 150,000 numbers take"):
        load(path)

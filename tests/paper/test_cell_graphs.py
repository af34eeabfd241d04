"""The paper's experiments describe nodes as the paper does, whatever the default of the package is."""

from pathlib import Path

import numpy as np
import pytest

from tfgw.datasets import load, save
from tfgw.datasets.graph_tables import GraphTables
from tfgw.paper.cell_graphs import class_labels, load_graphs


@pytest.mark.parametrize(("labels", "attributes", "kind"), [(1, 1, "attributes"), (1, 0, "labels"), (0, 0, "degree")])
def test_attributes_come_first_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: int, attributes: int, kind: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tables = GraphTables(
        node_counts=np.array([2, 3]),
        edge_counts=np.array([2, 2]),
        edges=np.array([[0, 1, 0, 2], [1, 0, 2, 0]]),
        node_labels=np.array([[4], [5], [4], [4], [6]]) if labels else None,
        node_attributes=np.linspace(-1, 1, 5)[:, None] if attributes else None,
        targets=np.array([0, 1]),
    )
    save(tables, tmp_path / "MINE")
    found = load_graphs("MINE", tmp_path)
    assert found.encoding == load("MINE", data_dir=tmp_path, features=kind).encoding


def test_graphs_without_classes_or_the_wanted_features_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tables = GraphTables(
        node_counts=np.array([2, 3]),
        edge_counts=np.array([2, 2]),
        edges=np.array([[0, 1, 0, 2], [1, 0, 2, 0]]),
        targets=np.array([0.5, 1.5]),
    )
    save(tables, tmp_path / "MINE")
    with pytest.raises(ValueError, match="MINE: the graphs have no classes"):
        class_labels(load_graphs("MINE", tmp_path))
    with pytest.raises(ValueError, match="attributes"):
        load_graphs("MINE", tmp_path, ("labels", "attributes"))

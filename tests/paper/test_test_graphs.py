"""What keeps a result honest: test graphs are seen once, by the model that was selected without them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.test_cli import write_tu_folder
from tests.paper.small import cell
from tests.paper.test_protocols import write_splits
from tfgw.datasets import load
from tfgw.paper.cell_graphs import class_labels
from tfgw.paper.protocols import Fair, Paper, TrainAll
from tfgw.paper.protocols.divided import DividedProtocol
from tfgw.paper.published_splits import digest
from tfgw.paper.run_context import RunContext
from tfgw.train import Parts

GRAPHS = 40


def write_numbered_graphs(folder: Path) -> Path:
    """Graph ``i`` has the attributes ``i`` and ``i²`` on all of its nodes, so that it can be recognised."""
    write_tu_folder(folder, graphs=GRAPHS)
    owners = np.loadtxt(folder / f"{folder.name}_graph_indicator.txt", dtype=int) - 1
    np.savetxt(folder / f"{folder.name}_node_attributes.txt", np.stack([owners, owners**2], 1), "%d", ", ")
    (folder / f"{folder.name}_node_labels.txt").unlink()
    return folder


class KnownScores:
    """Scores the graphs of each part differently, and insists on their own labels."""

    validation_score_ = 0.25

    def __init__(self, parts: Parts) -> None:
        self.known = [(parts.train, 0.75), (parts.validation, 0.625), (parts.test, 0.125)]

    def score(self, graphs: list[Any], labels: np.ndarray) -> float:
        for part, score in self.known:
            if part is not None and len(part) == len(graphs) and part[0].x.equal(graphs[0].x):
                np.testing.assert_array_equal(labels, class_labels(part))
                return score
        raise AssertionError("graphs of no part")


def test_each_accuracy_is_that_of_its_own_graphs(tmp_path: Path) -> None:
    dataset = load(write_numbered_graphs(tmp_path / "numbered"))
    parts = Parts(dataset[:20], dataset[20:29], dataset[29:])
    found = Fair().measure(cell(), KnownScores(parts), parts).result
    assert (found["train_accuracy"], found["validation_accuracy"], found["test_accuracy"]) == (0.75, 0.25, 0.125)
    assert (found["train_graphs"], found["validation_graphs"], found["test_graphs"]) == (20, 9, 11)
    found = Fair().measure(cell(), KnownScores(parts), parts._replace(validation=None)).result
    assert (found["validation_accuracy"], found["test_accuracy"], found["validation_graphs"]) == (None, 0.125, 0)


@pytest.mark.parametrize("protocol", [Fair(), Paper(), TrainAll()])
def test_features_are_standardised_by_the_training_graphs_alone(tmp_path: Path, protocol: DividedProtocol) -> None:
    folder = write_numbered_graphs(tmp_path / "numbered")
    one = cell(dataset=str(folder), protocol=protocol.cell_name, model="tfgw.estimators:TFGWClassifier", fold=3)
    parts = protocol.parts(one, RunContext(results=tmp_path))
    dataset = load(folder)
    fold = protocol.used(protocol.folds(class_labels(dataset), seed=0)[3])
    raw = np.concatenate([dataset[int(i)].x.double().numpy() for i in fold.train])
    mean, scale = raw.mean(0), raw.std(0)
    for part, positions in zip(parts, fold, strict=True):
        assert (part is None) == (len(positions) == 0)
        for graph, position in zip(part or (), positions, strict=True):
            expected = (np.array([position, position**2]) - mean) / scale
            np.testing.assert_allclose(graph.x.numpy(), np.tile(expected, (graph.num_nodes, 1)), rtol=1e-5, atol=1e-6)


def test_a_file_of_splits_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Records of its cells would carry the name of other splits."""
    folder = write_numbered_graphs(tmp_path / "numbered")
    folds = Fair().folds(np.arange(GRAPHS) % 2, seed=5)
    path = write_splits(tmp_path / "splits.json", folds)
    one = cell(dataset=str(folder), model="tfgw.estimators:TFGWClassifier", splits=digest(path))
    parts = Fair().parts(one, RunContext(results=tmp_path / "a", splits=path))
    assert [graph.num_nodes for graph in parts.test] == [4 + position % 3 for position in folds[0].test]
    write_splits(path, folds[::-1])
    with pytest.raises(ValueError, match=r"splits\.json: differs from the splits of the experiment"):
        Fair().parts(one, RunContext(results=tmp_path / "b", splits=path))
    with pytest.raises(ValueError, match="splits: required"):
        Fair().parts(one, RunContext(results=tmp_path / "c"))

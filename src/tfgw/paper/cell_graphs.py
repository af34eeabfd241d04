"""The graphs of a cell."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tfgw.datasets import Features, GraphDataset, load, random_split
from tfgw.paper.cells import Cell
from tfgw.paper.classifiers import classifier_class
from tfgw.paper.run_context import RunContext

PAPER_FEATURES: tuple[Features, ...] = ("attributes", "labels", "degree")
"""What describes a node in the paper's experiments: the first of these that a dataset has."""


class Parts(NamedTuple):
    """Graphs for training, for choosing the epoch to keep (``None``: the last one is kept), and for testing."""

    train: GraphDataset
    validation: GraphDataset | None
    test: GraphDataset


def cell_graphs(cell: Cell, context: RunContext) -> GraphDataset:
    """The dataset of a cell with the features that its classifier asks for."""
    wanted = getattr(classifier_class(cell.model), "node_features", PAPER_FEATURES)
    return load_graphs(cell.dataset, context.data_dir, wanted, cell.graphs)


@lru_cache(maxsize=2)
def load_graphs(
    name: str, data_dir: str | Path | None, wanted: tuple[Features, ...] = PAPER_FEATURES, graphs: int | None = None
) -> GraphDataset:
    """A dataset, or ``graphs`` of its graphs, with the first of the wanted features that it has."""
    for features in wanted:
        try:
            dataset = load(name, data_dir=data_dir, features=features)
        except ValueError:
            if features == wanted[-1]:
                raise
        else:
            break
    if graphs is None or graphs >= len(dataset):
        return dataset
    return dataset[random_split(dataset, val=0, test=graphs / len(dataset)).test]


def class_labels(dataset: GraphDataset) -> np.ndarray:
    """The class of each graph; a dataset without classes is an error."""
    if dataset.y is None or not dataset.classes:
        raise ValueError(f"{dataset.name}: the graphs have no classes")
    return dataset.y.numpy()

"""The graphs of a cell."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from tfgw.datasets import Features, GraphDataset, load, random_split
from tfgw.paper.cells import Cell
from tfgw.paper.classifiers import classifier_class
from tfgw.paper.run_context import RunContext

PAPER_FEATURES: tuple[Features, ...] = ("attributes", "labels", "degree")
"""Node features in the paper's experiments: the first of these that a dataset has."""


def cell_graphs(cell: Cell, context: RunContext) -> GraphDataset:
    """Load the dataset of a cell with the features of its classifier."""
    wanted = getattr(classifier_class(cell.model), "node_features", PAPER_FEATURES)
    return load_graphs(cell.dataset, context.data_dir, wanted, cell.graphs)


@lru_cache(maxsize=2)
def load_graphs(
    name: str, data_dir: str | Path | None, wanted: tuple[Features, ...] = PAPER_FEATURES, graphs: int | None = None
) -> GraphDataset:
    """Load a dataset, or ``graphs`` of its graphs, with the first of the given features that it has."""
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
    """Return the class of each graph; raise ``ValueError`` for a dataset without classes."""
    if dataset.y is None or not dataset.classes:
        raise ValueError(f"{dataset.name}: the graphs have no classes")
    return dataset.y.numpy()

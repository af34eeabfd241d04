"""Base class of protocols that split a dataset into training, validation and test graphs."""

from abc import abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np

from tfgw.datasets import load
from tfgw.paper.cell_graphs import cell_graphs, class_labels, load_graphs
from tfgw.paper.cells import Cell
from tfgw.paper.folds import Fold
from tfgw.paper.isomorphism import isomorphism_groups
from tfgw.paper.protocols.accuracy import AccuracyProtocol
from tfgw.paper.published_splits import digest, read_splits, splits_file
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.train import Parts, Preprocessing

VALIDATION_CAPTION = (
    "`validation` is the accuracy on the graphs that selected the checkpoint; it is optimistic and not a result. "
    "`train` is the accuracy of the same models on their training graphs."
)


class DividedProtocol(AccuracyProtocol):
    """Splits a dataset, or the part of it that a preset uses, into folds."""

    preprocesses = True

    @abstractmethod
    def folds(self, labels: np.ndarray, *, seed: int, groups: np.ndarray | None = None) -> list[Fold]:
        """Return the ten folds of one split, stratified by class; graphs of a group stay together."""

    def check_inputs(self, cell: Cell, context: RunContext) -> None:
        dataset = load(cell.dataset, data_dir=context.data_dir)
        if cell.splits is not None:
            _published_folds(cell.dataset, cell.splits, context, num_graphs=len(dataset))

    def parts(self, cell: Cell, context: RunContext) -> Parts:
        """Return the graphs of a fold in canonical order, with features standardised on its training graphs."""
        dataset = cell_graphs(cell, context)
        split = (cell.dataset, cell.split_seed, cell.grouped, cell.splits, cell.graphs)
        fold = self.used(_cached_folds(self, *split, context)[cell.fold])
        preprocessing = Preprocessing.fit(dataset[fold.train])
        return Parts.of(dataset, fold).map(preprocessing)

    def used(self, fold: Fold) -> Fold:
        """Adapt a fold to the protocol; folds may come from a file."""
        return fold

    def _cell(self, series: Series, configuration: dict[str, Any], **fields: Any) -> Cell:
        graphs = None if series.splits is not None else series.sizes["graphs"] or None
        return super()._cell(series, configuration, graphs=graphs, **fields)


@lru_cache(maxsize=8)
def _cached_folds(
    protocol: DividedProtocol,
    name: str,
    seed: int,
    grouped: bool,
    splits: str | None,
    graphs: int | None,
    context: RunContext,
) -> list[Fold]:
    dataset = load_graphs(name, context.data_dir, graphs=graphs)
    if splits is not None:
        return _published_folds(name, splits, context, num_graphs=len(dataset))
    groups = isomorphism_groups(dataset) if grouped else None
    return protocol.folds(class_labels(dataset), seed=seed, groups=groups)


def _published_folds(name: str, splits: str, context: RunContext, *, num_graphs: int) -> list[Fold]:
    path = None if context.splits is None else splits_file(context.splits, name)
    if path is None:
        raise ValueError(
            f"splits: required for {name}: the folder of its published splits, {name}_splits.json, or --own-folds"
        )
    if digest(path) != splits:
        raise ValueError(f"{path}: differs from the splits of the experiment, whose SHA-256 is {splits}")
    return read_splits(path, num_graphs=num_graphs)

"""Base class of all estimators: conversion and preprocessing of graphs, and scikit-learn tags."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, NodeEncoding
from tfgw.estimators.graphs import as_dataset, as_graphs, check_features
from tfgw.nn.tfgw_pooling import Structure
from tfgw.train import Preprocessing


class GraphEstimator(BaseEstimator):
    """An estimator whose ``X`` is a list of graphs; see :func:`tfgw.estimators.as_graphs`."""

    structure: Structure = "adjacency"
    directed: bool = False
    canonical_order: bool = False
    standardize: bool | None
    random_state: Any
    n_features_in_: int
    encoding_: NodeEncoding | None
    preprocessing_: Preprocessing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _as_graphs(self, X: Any) -> list[Data]:
        """Convert the input to the kind of graphs that the estimator uses."""
        return as_graphs(X, structure=self.structure, directed=self.directed)

    def _learn_input(self, X: Any) -> list[Data]:
        """Convert the graphs of ``fit``, and store their number of features."""
        graphs = self._as_graphs(X)
        self.n_features_in_ = int(graphs[0].x.shape[1])
        self.encoding_ = X.encoding if isinstance(X, GraphDataset) else None
        if not self.n_features_in_:
            self.encoding_ = NodeEncoding(features="constant")
        return graphs

    def _learn_preprocessing(self, train: GraphDataset) -> Preprocessing:
        return Preprocessing.fit(
            train,
            canonical_order=self.canonical_order,
            structure=self.structure,
            standardize=self.standardize,
        )

    def _read_input(self, X: Any) -> GraphDataset:
        """Convert and preprocess the graphs of a call after ``fit``."""
        if not hasattr(self, "preprocessing_"):  # faster than check_is_fitted, which collects all tags
            check_is_fitted(self)
        return self.preprocessing_(self._read_dataset(X))

    def _read_dataset(self, X: Any, y: Tensor | None = None) -> GraphDataset:
        """Convert graphs after ``fit``, with one row of targets for each, before preprocessing."""
        graphs = self._as_graphs(X)
        check_features(graphs, self.n_features_in_)
        if isinstance(X, GraphDataset) and self.encoding_ is not None:
            self.encoding_.check_columns(X.encoding)
        return self._stack(graphs, y)

    def _stack(self, graphs: list[Data], y: Tensor | None = None, *, classes: tuple[Any, ...] = ()) -> GraphDataset:
        """Combine checked graphs and targets to a dataset; subclasses may transform the graphs here."""
        dataset = as_dataset(graphs, y, classes=classes)
        dataset.encoding = self.encoding_
        return dataset

    def _generator(self) -> np.random.RandomState:
        """Return a generator; unlike scikit-learn, ``random_state=None`` does not use NumPy's global one."""
        return np.random.RandomState() if self.random_state is None else check_random_state(self.random_state)

    def _seed(self) -> int:
        return int(self._generator().randint(2**31 - 1))

    def _require_targets(self, y: Any) -> None:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")

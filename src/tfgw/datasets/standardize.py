"""Standardisation of node features with the statistics of the training graphs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tfgw.datasets.from_data import Graphs, as_graph_dataset
from tfgw.datasets.graph_dataset import GraphDataset


class Standardize:
    """Column-wise standardisation of ``x``; a column that is constant on the training graphs is only centred.

    >>> dataset = Standardize().fit(dataset, split.train).transform(dataset)
    """

    mean: Tensor
    scale: Tensor

    def fit(self, dataset: Graphs, indices: Sequence[int] | Tensor) -> "Standardize":
        """Compute mean and standard deviation over the nodes of the graphs ``dataset[indices]``."""
        x = as_graph_dataset(dataset)[indices].node_features.double()
        self.mean = x.mean(dim=0)
        deviation = x.std(dim=0, correction=0)
        # Due to rounding, the deviation of a constant column of large values is not exactly zero.
        is_constant = deviation <= 1e-10 * x.abs().amax(dim=0)
        self.scale = torch.where(is_constant, 1.0, deviation)
        return self

    def transform(self, dataset: Graphs) -> GraphDataset:
        """Return the graphs with standardised features."""
        return as_graph_dataset(dataset).with_node_features(lambda x: ((x - self.mean) / self.scale).to(x.dtype))

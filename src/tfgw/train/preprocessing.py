"""Preprocessing of a loaded dataset, the same in training and prediction."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfgw.datasets import CanonicalOrder, GraphDataset, Graphs, ShortestPaths, Standardize, as_graph_dataset


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Preprocessing steps between loaded graphs and the network.

    Args:
        in_channels: Number of features per node.
        canonical_order: Whether to put nodes and edges into canonical order, so that isomorphic graphs get the same
            embedding, bit for bit.
        structure: Kind of structure matrix. Shortest paths are computed once, before training.
        mean: Mean of each feature, which is subtracted. ``None`` disables standardisation.
        scale: Standard deviation of each feature, by which it is divided.
    """

    in_channels: int
    canonical_order: bool = True
    structure: str = "adjacency"
    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    @classmethod
    def fit(
        cls,
        train: Graphs,
        *,
        canonical_order: bool = True,
        structure: str = "adjacency",
        standardize: bool | None = None,
    ) -> "Preprocessing":
        """Fit the steps on the training graphs.

        ``standardize=None`` standardises real-valued features and leaves 0/1 features unchanged. If the features are
        attributes and one-hot labels, only the attributes are standardised.
        """
        train = as_graph_dataset(train)
        channels, encoding = train.num_node_features, train.encoding
        steps = cls(in_channels=channels, canonical_order=canonical_order, structure=structure)
        if standardize is False or (standardize is None and _is_binary(train.node_features)):
            return steps
        fitted = Standardize().fit(train, range(len(train)))
        if standardize is None and encoding is not None and encoding.features == "both":
            fitted.mean[encoding.num_attributes :] = 0
            fitted.scale[encoding.num_attributes :] = 1
        return replace(steps, mean=tuple(fitted.mean.tolist()), scale=tuple(fitted.scale.tolist()))

    def __call__(self, dataset: Graphs) -> GraphDataset:
        """Apply the steps."""
        dataset = as_graph_dataset(dataset)
        if dataset.num_node_features != self.in_channels:
            found = dataset.num_node_features
            raise ValueError(f"dataset: nodes have {found} features, but the model expects {self.in_channels}")
        if self.canonical_order:
            dataset = CanonicalOrder().of_dataset(dataset)
        if self.mean is not None and self.scale is not None:
            fitted = Standardize()
            fitted.mean = torch.tensor(self.mean, dtype=torch.float64)
            fitted.scale = torch.tensor(self.scale, dtype=torch.float64)
            dataset = fitted.transform(dataset)
        return dataset.map(ShortestPaths()) if self.structure == "shortest_path" else dataset


def _is_binary(x: Tensor) -> bool:
    return bool(((x == 0) | (x == 1)).all())

"""From a dataset as it was loaded to what a model takes, the same way in training and afterwards."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfgw.datasets import CanonicalOrder, GraphDataset, Graphs, ShortestPaths, Standardize, as_graph_dataset


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Steps between loading graphs and giving them to a model.

    Args:
        in_channels: Features per node that the model takes.
        canonical_order: Whether nodes and edges are put in canonical order, so that isomorphic graphs get the same
            embedding, to the last bit.
        structure: The model's structure; shortest paths are computed once, ahead of training.
        mean: Subtracted from each feature; ``None`` leaves features as they are.
        scale: Each feature is divided by it, after that.
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
        """Learn the steps from the training graphs.

        ``standardize=None`` standardises features that are real-valued, and leaves 0/1 features alone; where the
        features are attributes beside one-hot labels, the labels stay as they are.
        """
        train = as_graph_dataset(train)
        channels, encoding = train.num_node_features, train.encoding
        steps = cls(in_channels=channels, canonical_order=canonical_order, structure=structure)
        if standardize is False or (standardize is None and all(_is_binary(graph.x) for graph in train)):
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
            raise ValueError(f"dataset: nodes have {found} features, the model takes {self.in_channels}")
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

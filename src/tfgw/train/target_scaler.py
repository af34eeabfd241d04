"""Standardisation of regression targets for training."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets import GraphDataset


@dataclass(frozen=True, kw_only=True)
class TargetScaler:
    """Mean and standard deviation of each target over the training graphs. Constant targets have scale 1."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, y: np.ndarray) -> "TargetScaler":
        """Fit the scaler to targets ``(graphs, values)``."""
        mean, deviation = y.mean(axis=0), y.std(axis=0)
        # Due to rounding, the deviation of a constant column of large values is not exactly zero.
        is_constant = deviation <= 1e-10 * np.abs(y).max(axis=0)
        return cls(mean=tuple(mean.tolist()), scale=tuple(np.where(is_constant, 1.0, deviation).tolist()))

    @classmethod
    def of_dataset(cls, train: GraphDataset) -> "TargetScaler":
        """Fit the scaler to the targets of a dataset."""
        if train.y is None:
            raise ValueError("dataset: the graphs have no targets y")
        return cls.fit(train.y.double().reshape(len(train), -1).numpy())

    def transform(self, y: np.ndarray) -> np.ndarray:
        """Scale targets."""
        return (y - np.array(self.mean)) / np.array(self.scale)

    def inverse_transform(self, scaled: np.ndarray) -> np.ndarray:
        """Convert scaled targets, such as outputs of a network, to the original scale."""
        return scaled * np.array(self.scale) + np.array(self.mean)

    def scaled(self, dataset: GraphDataset) -> GraphDataset:
        """Return the graphs with scaled targets, ``(graphs, values)``; graphs without targets are unchanged."""
        y = dataset.stacked.get("y")
        if y is None:
            return dataset
        scaled = torch.from_numpy(self.transform(y.double().reshape(len(y), -1).numpy()))
        return dataset.with_tensors({"y": scaled.to(y.dtype) if y.is_floating_point() else scaled})

    def restored(self, outputs: Tensor) -> Tensor:
        """Convert outputs of a network to the original scale."""
        return outputs * outputs.new_tensor(self.scale) + outputs.new_tensor(self.mean)

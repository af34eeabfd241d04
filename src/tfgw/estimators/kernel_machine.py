"""Common base class of the kernel classifier and the kernel regressor."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.estimators.base import GraphEstimator
from tfgw.estimators.distance_cache import cached_table, read_table
from tfgw.estimators.distance_table import DistanceTable, key_of
from tfgw.estimators.saved_model import SavedModel
from tfgw.nn.graph_distance import GraphDistance
from tfgw.nn.kernel_model import Combination, KernelConfig, KernelModel
from tfgw.train import Preprocessing, Task, TrainConfig, TrainedModel, load_model, outputs
from tfgw.train.config import device_of
from tfgw.train.kernel_pipeline import (
    MAX_GRAPHS,
    KernelTraining,
    described_graphs,
    kernel_config,
    train_kernel,
)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMachine(SavedModel, GraphEstimator):
    """Base class for training and prediction. :class:`TFGWKernelClassifier` documents the parameters."""

    levels: Sequence[int] | None = None
    alphas: Sequence[float] | None = None
    degrees: bool = KernelConfig.degrees
    cycles: bool = KernelConfig.cycles
    clustering: bool | None = KernelConfig.clustering
    combine: Combination = KernelConfig.combine
    n_starts: int = KernelConfig.n_starts
    canonical_order: bool = Preprocessing.canonical_order
    standardize: bool | None = None
    max_graphs: int = MAX_GRAPHS
    cache: str | os.PathLike[str] | None = None
    accelerator: str = TrainConfig.accelerator
    num_threads: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    model_: KernelModel = field(init=False)
    training_indices_: np.ndarray = field(init=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a fitted estimator from a file written by :meth:`save` or ``tfgw train``."""
        trained = load_model(path)
        if not isinstance(trained.model, KernelModel):
            raise ValueError(f"{path}: the model is a network, not a kernel machine")
        config = trained.model.config
        same = ("alphas", "degrees", "cycles", "clustering", "combine", "n_starts")
        estimator = cls(**{name: getattr(config, name) for name in same})
        estimator.levels = None if config.levels == KernelConfig.levels else config.levels
        estimator.canonical_order = trained.preprocessing.canonical_order
        estimator.model_, estimator.preprocessing_ = trained.model, trained.preprocessing
        estimator.encoding_ = trained.encoding
        estimator.n_features_in_ = trained.source.get("n_features_in", trained.preprocessing.in_channels)
        estimator._set_target(trained, path)
        return estimator

    def precompute(self, X: Any, cache: str | os.PathLike[str]) -> None:
        """Compute the distances between all graphs ``X`` and store them in the folder ``cache``. No targets are needed.

        Estimators that are fitted on some of these graphs with the same ``cache`` reuse the distances. Standardised
        features depend on the training graphs, so that only the distances between degrees and between clustering
        coefficients can be reused; others are not computed.
        """
        self.cache = cache
        graphs = self._stack(self._learn_input(X))
        preprocessing = self._learn_preprocessing(graphs)
        prepared = preprocessing(graphs)
        for kind, described in described_graphs(prepared, self._config(prepared, 1)):
            if kind.nodes.kind != "averages" or preprocessing.mean is None:
                self._cached(described, kind)

    def _set_target(self, trained: TrainedModel, path: str | os.PathLike[str]) -> None:
        """Set the classes, or the scale of the targets, of a model that was loaded from ``path``."""
        raise NotImplementedError

    def _train(
        self,
        X: Any,
        y: Tensor,
        *,
        task: Task,
        channels: int,
        weights: np.ndarray | None,
        balanced_classes: bool = False,
        classes: tuple[Any, ...] = (),
    ) -> KernelTraining:
        graphs = self._learn_input(X)
        kept = self._kept(y, weights, task)
        dataset = self._stack([graphs[number] for number in kept], y[kept], classes=classes)
        self.preprocessing_ = self._learn_preprocessing(dataset)
        prepared = self.preprocessing_(dataset)
        training = train_kernel(
            prepared,
            self._config(prepared, channels),
            task=task,
            sample_weight=None if weights is None else weights[kept],
            balanced_classes=balanced_classes,
            distances=None if self.cache is None else self._cached,
            device=device_of(self.accelerator),
            num_threads=self.num_threads,
            progress_bar=self.verbose,
        )
        self.model_ = training.model
        self.training_indices_ = kept
        self._train_graphs = list(prepared)
        return training

    def _kept(self, y: Tensor, weights: np.ndarray | None, task: Task) -> np.ndarray:
        """Select training graphs: those of non-zero weight, or a stratified sample if there are too many."""
        if self.max_graphs < 2:
            raise ValueError(f"max_graphs: must be at least 2, got {self.max_graphs}")
        kept = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
        if len(kept) <= self.max_graphs:
            return kept
        warnings.warn(
            f"tfgw: a kernel machine compares all pairs of graphs; this one is trained on a random sample of"
            f" {self.max_graphs} of {len(kept)} graphs (max_graphs)",
            stacklevel=4,
        )
        shuffled = self._generator().permutation(kept)
        if task == "classification":  # evenly spaced positions in order of class
            shuffled = shuffled[np.argsort(y.numpy()[shuffled], kind="stable")]
        return np.sort(shuffled[np.linspace(0, len(shuffled) - 1, self.max_graphs).astype(int)])

    def _config(self, prepared: GraphDataset, channels: int) -> KernelConfig:
        return kernel_config(
            prepared,
            channels,
            levels=self.levels,
            alphas=self.alphas,
            degrees=self.degrees,
            cycles=self.cycles,
            clustering=self.clustering,
            combine=self.combine,
            n_starts=self.n_starts,
        )

    def _cached(self, graphs: list[Data], kind: GraphDistance) -> Tensor:
        """Return distances between described graphs from the cache. If they are missing, compute and store them."""
        if any("edge_weight" in graph or "node_weights" in graph for graph in graphs):
            raise ValueError("cache: identifies graphs by features and edges, so it does not support weighted graphs")
        keys = [key_of(graph) for graph in graphs]
        unique = dict(zip(keys, graphs, strict=True))

        def compute() -> DistanceTable:
            matrix = ot.pairwise(
                list(unique.values()),
                **kind.options,
                n_starts=self.n_starts,
                device=device_of(self.accelerator),
                num_threads=self.num_threads,
                progress_bar=self.verbose,
            )
            return DistanceTable(np.array(list(unique)), matrix.cpu().numpy())

        table = cached_table(self._folder(kind), keys, compute)
        return torch.from_numpy(np.ascontiguousarray(table.between(keys, keys)))

    def _folder(self, kind: GraphDistance) -> Path:
        assert self.cache is not None
        return Path(self.cache) / f"fgw-{kind.node_cost}-alpha={kind.alpha:g}-starts={self.n_starts}"

    def _known_distances(self, graphs: GraphDataset) -> list[Tensor] | None:
        """Return the distances to the training graphs if the cache contains all of them."""
        if self.cache is None or not hasattr(self, "_train_graphs"):
            return None
        found = []
        parts = (described_graphs(part, self.model_.config) for part in (graphs, self._train_graphs))
        for (kind, new), (_, known) in zip(*parts, strict=True):
            rows, columns = ([key_of(graph) for graph in part] for part in (new, known))
            table = read_table(self._folder(kind), [*rows, *columns])
            if table is None:
                return None
            found.append(torch.from_numpy(np.ascontiguousarray(table.between(rows, columns))))
        return found

    def _outputs(self, X: Any) -> Tensor:
        """Return the outputs of the machine, ``(num_graphs, out_channels)``."""
        dataset = self._read_input(X)
        known = self._known_distances(dataset)
        if known is not None:
            return self.model_.scores(known).detach()
        device = device_of(self.accelerator)
        try:
            return outputs(self.model_.to(device), dataset).cpu()
        finally:
            self.model_.to("cpu")

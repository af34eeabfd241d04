"""From loaded graphs to a trained model. The command line and all estimators use this pipeline.

loaded parts ─ weights, scaled targets, preprocessing, once ─▶ prepared parts ─ build ─▶ network, templates drawn
             ─ fit ─▶ selected weights

The settings are data: :class:`Preprocessing`, :class:`tfgw.nn.TFGWConfig` and :class:`TrainConfig`, which define all
defaults.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from tfgw.datasets import GraphDataset
from tfgw.datasets.limits import check_array
from tfgw.nn import Ensemble, TFGWConfig, TFGWModel
from tfgw.train.config import DTYPES, TrainConfig, device_of
from tfgw.train.fixed_distances import HeadOnly, as_distances, has_fixed_distances
from tfgw.train.graph_weights import training_weights, with_graph_weights
from tfgw.train.loop import FitResult, fit
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.target_scaler import TargetScaler
from tfgw.train.tasks import Task


class Parts(NamedTuple):
    """Training, validation and test graphs; ``None`` for a missing part."""

    train: GraphDataset
    validation: GraphDataset | None = None
    test: GraphDataset | None = None

    @classmethod
    def of(cls, dataset: GraphDataset, split: Iterable[Tensor | np.ndarray]) -> "Parts":
        """Divide a dataset by positions of training, validation and test graphs. A part without graphs is missing."""
        train, *others = split
        return cls(dataset[train], *(dataset[part] if len(part) else None for part in others))

    def map(self, change: Callable[[GraphDataset], GraphDataset]) -> "Parts":
        """Apply a function to every part that is not ``None``."""
        return Parts(*(None if part is None else change(part) for part in self))  # type: ignore[arg-type]


class Training(NamedTuple):
    """Result of :func:`train_model`.

    Attributes:
        model: The trained network.
        parts: The preprocessed graphs, with scaled targets for regression.
        result: The training history.
        target_scaler: For regression, converts outputs of the network to predicted values.
    """

    model: nn.Module
    parts: Parts
    result: FitResult
    target_scaler: TargetScaler | None = None


Build = Callable[[GraphDataset, TrainConfig], nn.Module]
"""Builds the untrained network for preprocessed training graphs and a configuration with a seed."""


class FitOptions(TypedDict, total=False):
    """Checkpoint and logging options of :func:`tfgw.train.fit`."""

    folder: Path | None
    resume: bool
    progress_bar: bool
    tensorboard: bool


def train_model(
    parts: Parts,
    build: Build,
    config: TrainConfig,
    *,
    preprocessing: Preprocessing,
    n_estimators: int = 1,
    sample_weight: np.ndarray | None = None,
    balanced_classes: bool = False,
    **options: Unpack[FitOptions],
) -> Training:
    """Preprocess the graphs, build a network, and train it. Regression targets are standardised.

    Args:
        parts: Graphs as loaded; each is preprocessed once.
        build: Builds the untrained network for the preprocessed training graphs. PyTorch's random generators are seeded
            by the configuration before the call.
        config: Training settings.
        preprocessing: Preprocessing, fitted on the training graphs.
        n_estimators: Number of networks. If greater than 1, the model is a :class:`tfgw.nn.Ensemble`.
        sample_weight: Weight of each training graph in the loss. Only the ratios of weights matter.
        balanced_classes: Whether to give all classes the same total weight in the loss.
        **options: As in :func:`tfgw.train.fit`.
    """
    configs = _member_configs(config, n_estimators)
    device_of(config.accelerator)  # a missing GPU is reported before the graphs are preprocessed
    scaler = TargetScaler.of_dataset(parts.train) if config.task == "regression" else None
    weights = training_weights(parts.train, sample_weight, balanced_classes=balanced_classes)
    weighted = parts if weights is None else parts._replace(train=with_graph_weights(parts.train, weights))
    prepared = (weighted if scaler is None else weighted.map(scaler.scaled)).map(preprocessing)
    members = [_seeded(build, prepared.train, member) for member in configs]
    model = members[0] if n_estimators == 1 else Ensemble(members)
    return Training(model, prepared, _fit(model, prepared, config, **options), scaler)


def build_tfgw(
    train: GraphDataset, config: TrainConfig, *, architecture: TFGWConfig, num_threads: int | None = None
) -> TFGWModel:
    """Build a TFGW model whose templates are initialised with training graphs."""
    _check_templates(architecture)
    # Templates have no higher precision than the graphs that they are sampled from.
    is_double = train[0].x.dtype == DTYPES[config.precision] == torch.float64
    model = TFGWModel(architecture, num_threads=num_threads).to(torch.float64 if is_double else torch.float32)
    return model.init_templates(train, seed=config.seed)


def _check_templates(architecture: TFGWConfig) -> None:
    """Check the size of the templates, which usually depends on the classes and graphs of a file."""
    templates, nodes = architecture.num_templates, architecture.template_nodes
    channels = architecture.in_channels + architecture.num_layers * architecture.width
    for shape in ((templates, nodes, nodes), (templates, nodes, channels)):
        check_array(*shape, itemsize=8, what="templates", instead="choose fewer templates or template_nodes")


def num_outputs(dataset: GraphDataset, task: Task) -> int:
    """Return the number of outputs per graph: scores of classes or labels, or values."""
    if task == "classification":
        return dataset.num_classes
    return 1 if dataset.y is None or dataset.y.dim() == 1 else dataset.y.shape[1]


def _member_configs(config: TrainConfig, n_estimators: int) -> list[TrainConfig]:
    """Return the configuration of each network, with its own seed."""
    if n_estimators < 1:
        raise ValueError(f"n_estimators: must be at least 1, got {n_estimators}")
    if n_estimators == 1:
        return [config]
    seeds = np.random.SeedSequence(config.seed).generate_state(n_estimators) >> np.uint32(1)
    return [replace(config, seed=int(seed)) for seed in seeds]


def _seeded(build: Build, train: GraphDataset, config: TrainConfig) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return build(train, config).to(DTYPES[config.precision])


def _fit(model: nn.Module, parts: Parts, config: TrainConfig, **options: Unpack[FitOptions]) -> FitResult:
    if not has_fixed_distances(model):
        return fit(model, parts.train, parts.validation, config=config, **options)
    distances = Parts(parts.train, parts.validation).map(partial(as_distances, model))
    return fit(HeadOnly(model), distances.train, distances.validation, config=config, **options)

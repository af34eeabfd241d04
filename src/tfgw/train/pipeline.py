"""From graphs as they were loaded to a trained model: the one path of the command line and of all estimators.

loaded parts ─ preprocessing, once ─▶ prepared parts ─ build ─▶ network, templates drawn ─ fit ─▶ weights worth keeping

What is done is data: :class:`Preprocessing`, :class:`tfgw.nn.TFGWConfig` and :class:`TrainConfig`, in which every
default is written.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from torch import nn

from tfgw.datasets import GraphDataset
from tfgw.datasets.limits import check_array
from tfgw.nn import Ensemble, TFGWConfig, TFGWModel
from tfgw.train.config import DTYPES, TrainConfig
from tfgw.train.fixed_distances import HeadOnly, as_distances, has_fixed_distances
from tfgw.train.loop import FitResult, fit
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.tasks import Task


class Parts(NamedTuple):
    """Graphs to train on, to select the best epoch by, and to measure on; ``None`` for a part without any."""

    train: GraphDataset
    validation: GraphDataset | None = None
    test: GraphDataset | None = None

    def map(self, change: Callable[[GraphDataset], GraphDataset]) -> "Parts":
        """Change every part that there is."""
        return Parts(*(None if part is None else change(part) for part in self))  # type: ignore[arg-type]


class Training(NamedTuple):
    """A trained network, the prepared graphs, and how the training went."""

    model: nn.Module
    parts: Parts
    result: FitResult


Build = Callable[[GraphDataset, TrainConfig], nn.Module]
"""Gives the untrained network for prepared training graphs and a configuration, whose seed decides what is random."""


class FitOptions(TypedDict, total=False):
    """Where a training leaves its traces; see :func:`tfgw.train.fit`."""

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
    **options: Unpack[FitOptions],
) -> Training:
    """Prepare the graphs, build a network for them, and train it.

    Args:
        parts: The graphs as they were loaded; each is preprocessed once.
        build: Gives the untrained network for the prepared training graphs; PyTorch's random numbers depend on
            the seed of the configuration alone when it is called.
        config: How to train.
        preprocessing: Steps between loaded graphs and the network, as learned from the training graphs.
        n_estimators: Networks to train side by side; of several, the model is an :class:`tfgw.nn.Ensemble`.
        **options: As in :func:`tfgw.train.fit`.
    """
    configs = _member_configs(config, n_estimators)
    prepared = parts.map(preprocessing)
    members = [_seeded(build, prepared.train, member) for member in configs]
    model = members[0] if n_estimators == 1 else Ensemble(members)
    return Training(model, prepared, _fit(model, prepared, config, **options))


def build_tfgw(train: GraphDataset, config: TrainConfig, *, architecture: TFGWConfig) -> TFGWModel:
    """A TFGW model whose templates start at training graphs."""
    _check_templates(architecture)
    # Templates have no more digits than the graphs that they are drawn from.
    is_double = train[0].x.dtype == DTYPES[config.precision] == torch.float64
    model = TFGWModel(architecture).to(torch.float64 if is_double else torch.float32)
    return model.init_templates(train, seed=config.seed)


def _check_templates(architecture: TFGWConfig) -> None:
    """Their number and size are usually those of the classes and graphs of a file."""
    templates, nodes = architecture.num_templates, architecture.template_nodes
    channels = architecture.in_channels + architecture.num_layers * architecture.width
    for shape in ((templates, nodes, nodes), (templates, nodes, channels)):
        check_array(*shape, itemsize=8, what="templates", instead="choose fewer templates or template_nodes")


def num_outputs(dataset: GraphDataset, task: Task) -> int:
    """How many numbers a network gives for each graph: scores of classes or labels, or values."""
    if task == "classification":
        return dataset.num_classes
    return 1 if dataset.y is None or dataset.y.dim() == 1 else dataset.y.shape[1]


def _member_configs(config: TrainConfig, n_estimators: int) -> list[TrainConfig]:
    """The configuration of each network, with a seed of its own."""
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

"""Train a kernel machine: compute distances between all training graphs, and fit ridge regressions.

train_kernel: preprocessed graphs ─ scaled targets ─▶ described nodes ─ ot.pairwise ─▶ distances ─ kernel_ridge
              ─▶ KernelModel
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.nn.graph_distance import GraphDistance, NodeDescription
from tfgw.nn.kernel_model import Combination, FeatureKind, KernelConfig, KernelModel, StackedGraphs
from tfgw.nn.refinement import disjoint_union
from tfgw.nn.threads import one_thread
from tfgw.train.graph_weights import training_weights
from tfgw.train.kernel_ridge import (
    LARGEST_DECOMPOSITION,
    RidgeFit,
    advantage,
    fit_ridge,
    mean_left_out,
    mixture_weights,
    sharpness,
    typical_distance,
)
from tfgw.train.target_scaler import TargetScaler
from tfgw.train.tasks import Task

MAX_GRAPHS = 5000
"""Default maximum number of training graphs, because the number of pairs grows with its square."""
LABEL_LEVELS = (4, 5, 6, 7)
"""Levels above the others at which labels are compared as long as they explain more (:func:`train_kernel`)."""
CLEAR_ADVANTAGE = 3.0
"""Number of standard errors by which the leave-one-out error of one regression on all distances must be smaller."""
STRUCTURE_WORK = 1e11
"""Structures are compared by default if Σ (n m)^1.5 over all pairs of graphs is at most this value.

Two cores take about five minutes for that, and a GPU some seconds."""

Distances = Callable[[list[Data], GraphDistance], Tensor]
"""Function that returns the distances of a kind between all graphs, whose nodes have the features of this kind."""


class KernelTraining(NamedTuple):
    """Result of :func:`train_kernel`.

    Attributes:
        model: The trained machine.
        left_out: Leave-one-out outputs for each training graph, ``(num_graphs, out_channels)``.
        known: The targets of the training graphs, scaled for regression.
        fits: The ridge regressions: one for each distance of ``model.config``, or one for all.
        target_scaler: For regression, converts outputs of the machine to predicted values.
    """

    model: KernelModel
    left_out: Tensor
    known: Tensor
    fits: list[RidgeFit]
    target_scaler: TargetScaler | None


def train_kernel(
    graphs: GraphDataset,
    config: KernelConfig,
    *,
    task: Task,
    sample_weight: np.ndarray | None = None,
    balanced_classes: bool = False,
    distances: Distances | None = None,
    device: str = "cpu",
    num_threads: int | None = None,
    progress_bar: bool = False,
) -> KernelTraining:
    """Train a kernel machine on preprocessed graphs with targets ``y``, which are class indices or values.

    Values are standardised. The machine has the :func:`useful_distances` of the configuration.

    Args:
        graphs: The training graphs.
        config: Configuration of the distances.
        task: ``"classification"`` or ``"regression"``.
        sample_weight: Weight of each graph. Only the ratios of weights matter.
        balanced_classes: Whether to give all classes the same total weight.
        distances: Function that computes or loads distances; ``None`` for :func:`tfgw.ot.pairwise`.
        device: Device of the solver and of kernel decompositions: ``"cpu"`` or ``"cuda"``.
        num_threads: Number of solver threads.
        progress_bar: Whether to show progress bars.
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task: a kernel machine learns classes or values, got {task!r}")
    if graphs.y is None:
        raise ValueError("graphs: have no target y to learn")
    scaler = TargetScaler.of_dataset(graphs) if task == "regression" else None
    y = graphs.y if scaler is None else cast(Tensor, scaler.scaled(graphs).y)

    def solved(described: list[Data], kind: GraphDistance) -> Tensor:
        return ot.pairwise(
            described,
            **kind.options,
            n_starts=config.n_starts,
            device=device,
            num_threads=num_threads,
            progress_bar=progress_bar,
        )

    targets = _targets(y, config.out_channels, task).to(device)
    weights = training_weights(graphs, sample_weight, balanced_classes=balanced_classes)
    counted = None if weights is None else torch.from_numpy(weights).to(device)
    fitted = _fitted(graphs, config, distances or solved, targets, counted)
    shares = mixture_weights(fitted.fits)
    left_out = mean_left_out(fitted.fits)
    with one_thread():
        factor = sharpness(left_out, y) if task == "classification" else 1.0
    model = KernelModel(
        fitted.config,
        _stacked(list(graphs)),
        rates=fitted.rates,
        weights=shares,
        coefficients=torch.stack([fit.coefficients for fit in fitted.fits]),
        factor=torch.tensor(factor, dtype=torch.float64),
        mean_distances=fitted.mean_distances,
        left_out=factor * left_out,
        num_threads=num_threads,
    )
    return KernelTraining(model.eval(), model.left_out, y, fitted.fits, scaler)


class _Fitted(NamedTuple):
    """Ridge regressions with their rates, and the distances that they use."""

    config: KernelConfig
    fits: list[RidgeFit]
    rates: Tensor
    mean_distances: Tensor


def _fitted(
    graphs: GraphDataset, config: KernelConfig, distances: Distances, targets: Tensor, weights: Tensor | None
) -> _Fitted:
    """Compute the distances between the graphs one by one, and fit a regression to each, or to their sum."""
    latest = targets

    def each() -> Iterator[tuple[GraphDistance, RidgeFit]]:
        nonlocal latest
        for kind, described in described_graphs(graphs, config):
            latest = distances(described, kind).to(targets.device)
            yield kind, fit_ridge(latest, targets, weights).cpu()

    found: dict[GraphDistance, RidgeFit] = {}
    means: dict[GraphDistance, Tensor] = {}
    scales = []
    total = torch.zeros_like(targets[:, :1])
    for kind, fit in useful_distances(config, each()):
        found[kind], means[kind] = fit, latest.mean(0).cpu()
        if config.combine != "scores":
            scales.append(typical_distance(latest))
            total = total + latest / scales[-1]
    kept = tuple(level for level in config.label_levels if config.feature_distance(level, 0.0) in found)
    config = replace(config, label_levels=kept)
    separate = replace(config, clustering=bool(config.clustering), combine="scores")
    fits = [found[kind] for kind in separate.distances]
    if config.combine != "scores":
        joint = fit_ridge(total, targets, weights).cpu()
        gain = advantage(joint.left_out, mean_left_out(fits), targets.cpu(), weights)
        if config.combine == "distances" or gain > CLEAR_ADVANTAGE:
            config = replace(config, clustering=config.clustering is not False, combine="distances")
            rates = joint.rate / torch.tensor([scales], dtype=torch.float64)
            return _Fitted(config, [joint], rates, torch.stack(list(means.values())))
    rates = torch.diag(torch.tensor([fit.rate for fit in fits], dtype=torch.float64))
    return _Fitted(separate, fits, rates, torch.stack([means[kind] for kind in separate.distances]))


def useful_distances(
    config: KernelConfig, fits: Iterable[tuple[GraphDistance, RidgeFit]]
) -> Iterator[tuple[GraphDistance, RidgeFit]]:
    """Yield the distances of a configuration, up to the first of ``config.label_levels`` that is not useful.

    Labels of high levels are too rare to be useful in small datasets. They are useful as long as they explain more of
    the variance of the targets than labels at each of ``config.levels``.

    Args:
        config: Configuration of the distances.
        fits: The distances in their order, with the ridge regression of each. They are not read further than necessary.
    """
    best = 0.0
    for kind, fit in fits:
        if kind.nodes.kind == "labels":
            if kind.nodes.level in config.levels:
                best = max(best, fit.explained)
            elif fit.explained <= best:
                return
        yield kind, fit


def _targets(y: Tensor, channels: int, task: Task) -> Tensor:
    """Return the regression targets. Classes are one-hot minus 1/channels, so that shrinkage favours no class."""
    if task == "classification":
        return torch.nn.functional.one_hot(y, channels).double() - 1 / channels
    return y.reshape(len(y), channels).double()


def kernel_config(
    graphs: GraphDataset,
    out_channels: int,
    *,
    levels: Sequence[int] | None = None,
    alphas: Sequence[float] | None = None,
    degrees: bool = KernelConfig.degrees,
    cycles: bool = KernelConfig.cycles,
    clustering: bool | None = KernelConfig.clustering,
    combine: Combination = KernelConfig.combine,
    n_starts: int = KernelConfig.n_starts,
) -> KernelConfig:
    """Return the distances of a machine for preprocessed training graphs.

    Args:
        graphs: The training graphs.
        out_channels: Number of classes, or of values to predict.
        levels: Levels of refinement. If ``None``, 0 to 3; for labels also ``LABEL_LEVELS``, if they help.
        alphas: Trade-offs between features (0) and structure (1). If ``None``, :func:`default_alphas`.
        degrees: Whether graphs are also compared by degrees.
        cycles: Whether labels are also compared together with the lengths of cycles, if :func:`cycles_distinguish`.
        clustering: As in :class:`tfgw.nn.KernelConfig`; ``False`` if all clustering coefficients are 0. Without a
            regression on all distances, ``None`` is ``False``.
        combine: As in :class:`tfgw.nn.KernelConfig`. ``"auto"`` is ``"scores"`` for up to ``LARGEST_DECOMPOSITION``
            graphs: negative eigenvalues of their kernels are dropped, and the leave-one-out error of the sum of all
            distances, which has many, may then be much too small.
        n_starts: Number of starts of the solver per pair.
    """
    features = default_features(graphs)
    if combine == "auto" and len(graphs) <= LARGEST_DECOMPOSITION:
        combine = "scores"
    is_compared = clustering is not False and (clustering or combine != "scores")
    if not (is_compared and has_triangles(graphs)):
        clustering = False
    if alphas is None:
        alphas = default_alphas([graph.num_nodes for graph in graphs])
    has_label_levels = levels is None and features == "labels" and 0 in alphas
    return KernelConfig(
        in_channels=graphs.num_node_features,
        out_channels=out_channels,
        features=features,
        levels=KernelConfig.levels if levels is None else tuple(int(level) for level in levels),
        alphas=tuple(float(alpha) for alpha in alphas),
        label_levels=LABEL_LEVELS if has_label_levels else (),
        degrees=degrees,
        cycles=cycles and features == "labels" and cycles_distinguish(graphs),
        clustering=clustering,
        combine=combine,
        n_starts=n_starts,
    )


def default_alphas(sizes: Sequence[int]) -> tuple[float, ...]:
    """Return the trade-offs for training graphs of these sizes: features alone if comparing structures takes too long.

    Without structure, comparing takes a small part of that time.
    """
    return KernelConfig.alphas if pair_work(sizes) <= STRUCTURE_WORK else (0.0,)


def pair_work(sizes: Sequence[int]) -> float:
    """Return the sum of (n m)^1.5 over all pairs of graphs. The time of a pair grows with this on average."""
    return float((np.asarray(sizes, dtype=float) ** 1.5).sum()) ** 2 / 2


def default_features(graphs: GraphDataset) -> FeatureKind:
    """Return ``"labels"`` if all node features are 0 or 1, so that each row is a label, otherwise ``"averages"``."""
    discrete = all(bool(((graph.x == 0) | (graph.x == 1)).all()) for graph in graphs)
    return "labels" if discrete else "averages"


def cycles_distinguish(graphs: GraphDataset) -> bool:
    """Return whether the shortest cycles through some nodes with equal labels have different lengths."""
    x, edge_index, _ = disjoint_union(list(graphs))
    plain, with_cycles = (NodeDescription(kind, 0).features(x, edge_index) for kind in ("labels", "cycles"))
    return len(plain.unique()) < len(with_cycles.unique())


def has_triangles(graphs: GraphDataset) -> bool:
    """Return whether any node has a clustering coefficient above 0."""
    x, edge_index, _ = disjoint_union(list(graphs))
    return bool(NodeDescription("clustering", 0).features(x, edge_index).any())


def described_graphs(graphs: Iterable[Data], config: KernelConfig) -> Iterator[tuple[GraphDistance, list[Data]]]:
    """Yield each distance of a machine, and all graphs with the features that it compares."""
    given = list(graphs)
    for nodes, kinds in groupby(config.distances, key=lambda kind: kind.nodes):
        described = with_description(given, nodes)
        for kind in kinds:
            yield kind, described


def with_description(graphs: Iterable[Data], nodes: NodeDescription) -> list[Data]:
    """Return all graphs with the features of a description."""
    given = list(graphs)
    if not given:
        return []
    x, edge_index, sizes = disjoint_union(given)
    x = nodes.features(x, edge_index)
    return [_with_features(graph, part) for graph, part in zip(given, x.split(sizes), strict=True)]


def _with_features(graph: Data, x: Tensor) -> Data:
    kept = ("edge_index", "edge_weight", "node_weights")
    return Data(x=x, **{name: graph[name] for name in kept if name in graph})


def _stacked(graphs: list[Data]) -> StackedGraphs:
    plain = [Data(**{name: graph[name] for name in ("x", "edge_index", "edge_weight", "node_weights") if name in graph})
             for graph in graphs]  # fmt: skip
    batch = Batch.from_data_list(plain)
    weights = (batch.get(name) for name in ("edge_weight", "node_weights"))
    return StackedGraphs(
        batch.x.double(), batch.edge_index, batch.batch, *(None if w is None else w.double() for w in weights)
    )

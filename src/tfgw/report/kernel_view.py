"""Outputs of a kernel machine for the graphs of a report, and the influence of its training graphs."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.datasets import GraphDataset
from tfgw.explanations.score_weights import score_weights
from tfgw.nn import KernelModel
from tfgw.nn.threads import networks_on_one_thread, solver_threads
from tfgw.ot import pairwise
from tfgw.train import Task
from tfgw.train.evaluate import BATCH_SIZE, evaluation_mode, store_for
from tfgw.train.kernel_pipeline import with_description

LANDMARKS, LANDMARK_PAIRS = 100, 400_000
"""Maximum number of training graphs whose distances are coordinates of the map, and of pairs to solve for it."""
INFLUENCED = 200
"""Maximum number of graphs over which influences are averaged."""


class KernelView(NamedTuple):
    """What a report shows of a kernel machine in the place of templates.

    Attributes:
        landmarks: Training graphs, evenly spaced, whose distances are the coordinates of the map.
        level: Level of refinement of these distances.
        alpha: α of these distances.
        influence: Mean absolute contribution of each training graph to the score of each output, ``(outputs, graphs)``.
        influenced: Number of graphs over which it is averaged.
        training_part: Name of the part that contains the training graphs, in their order; ``None`` if there is none.
    """

    landmarks: list[int]
    level: int
    alpha: float
    influence: np.ndarray
    influenced: int
    training_part: str | None


class KernelOutputs(NamedTuple):
    """Outputs of the machine, and distances to the landmarks, ``(graphs, …)`` each, part after part.

    The outputs for training graphs are those of leave-one-out.
    """

    outputs: list[np.ndarray]
    distances: list[np.ndarray]
    view: KernelView


def read_kernel(model: KernelModel, prepared: Mapping[str, GraphDataset], task: Task) -> KernelOutputs:
    """Apply the machine to preprocessed graphs."""
    total = sum(len(dataset) for dataset in prepared.values())
    count = min(LANDMARKS, model.num_graphs, max(16, LANDMARK_PAIRS // max(1, total)))
    landmarks = np.linspace(0, model.num_graphs - 1, count).round().astype(int).tolist()
    levels = model.config.levels
    kind = model.config.feature_distance(levels[(len(levels) - 1) // 2], model.config.alphas[-1])
    training_part = next((name for name, dataset in prepared.items() if _is_training_set(model, dataset)), None)
    outputs, influences = [], []
    for name, dataset in prepared.items():
        if name == training_part:
            outputs.append(model.left_out.numpy())
        else:
            found, influence = _applied(model, dataset, task)
            outputs.append(found.numpy())
            influences.append(influence)
    if not influences:  # there are only the training graphs
        (dataset,) = prepared.values()
        influences.append(_applied(model, dataset[:: _step(dataset)], task)[1])
    influence = torch.cat(influences)
    with networks_on_one_thread():
        others = with_description(map(model.training_graph, landmarks), kind.nodes)
        columns = [
            pairwise(
                with_description(dataset, kind.nodes),
                others,
                **kind.options,
                n_starts=model.config.n_starts,
                num_threads=solver_threads(model.num_threads) or None,
            ).numpy()
            for dataset in prepared.values()
        ]
    view = KernelView(landmarks, kind.nodes.level, kind.alpha, influence.mean(0).numpy(), len(influence), training_part)
    return KernelOutputs(outputs, columns, view)


def _is_training_set(model: KernelModel, dataset: GraphDataset) -> bool:
    if len(dataset) != model.num_graphs:
        return False
    return torch.equal(torch.cat([graph.x.double() for graph in dataset]), model.graph_x.cpu())


def _step(dataset: GraphDataset) -> int:
    return -(-len(dataset) // INFLUENCED)


def _applied(model: KernelModel, dataset: GraphDataset, task: Task) -> tuple[Tensor, Tensor]:
    """Return the outputs for all graphs, and the influence of training graphs on evenly spaced ones."""
    outputs, influences = [], []
    with evaluation_mode(model), networks_on_one_thread():
        for batch in store_for(model, dataset).in_order(BATCH_SIZE):
            distances = model.distances(**batch.inputs)
            outputs.append(model.scores(distances))
            influences.append(_influence(model, [kind[:: _step(dataset)] for kind in distances], task))
    return torch.cat(outputs), torch.cat(influences)


def _influence(model: KernelModel, distances: list[Tensor], task: Task) -> Tensor:
    """Return the absolute contribution of each training graph to each score, ``(graphs, outputs, num_graphs)``."""
    outputs = model.config.out_channels
    weights = torch.stack([score_weights(task, outputs, target) for target in range(outputs)])
    total = torch.zeros(len(distances[0]), outputs, model.num_graphs, dtype=torch.float64)
    coefficients = model.weights[:, None, None] * model.coefficients.detach()
    references = model.kernels(list(model.mean_distances[:, None]))
    for kernel, reference, factors in zip(model.kernels(distances), references, coefficients, strict=True):
        total += (kernel - reference)[:, None] * (factors @ weights.T).T
    return (model.factor * total).abs()

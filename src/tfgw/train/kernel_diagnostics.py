"""Quality of the distances of a kernel machine to some of its training graphs."""

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.nn import KernelModel
from tfgw.nn.graph_distance import GraphDistance
from tfgw.nn.threads import networks_on_one_thread, solver_threads
from tfgw.ot.pair_details import pair_details
from tfgw.train.batches import Batch
from tfgw.train.evaluate import BATCH_SIZE, evaluation_mode, store_for
from tfgw.train.kernel_pipeline import with_description

CHECKED = 64
"""Maximum number of training graphs to compare with."""


def checked_training_graphs(model: KernelModel) -> list[int]:
    """Return the training graphs to compare with: all, or evenly spaced ones."""
    count = min(model.num_graphs, CHECKED)
    chosen: list[int] = np.linspace(0, model.num_graphs - 1, count).round().astype(int).tolist()
    return chosen


def kernel_diagnosis(
    model: KernelModel, prepared: GraphDataset, n_starts: int, *, lower_bounds: bool = True
) -> ot.Diagnosis:
    """Diagnose the distances of preprocessed graphs to :func:`checked_training_graphs`, for each kind of distance.

    Args:
        model: The kernel machine.
        prepared: The graphs.
        n_starts: Number of starts per pair.
        lower_bounds: Whether to compute lower bounds.

    Returns:
        The diagnosis of ``(num_graphs, num_distances * num_checked)`` pairs.
    """
    with evaluation_mode(model), networks_on_one_thread():
        chosen = [model.training_graph(number) for number in checked_training_graphs(model)]
        batches = list(store_for(model, prepared).in_order(BATCH_SIZE))
        kinds = [
            _of_kind(model, batches, chosen, kind, n_starts=n_starts, lower_bounds=lower_bounds)
            for kind in model.config.distances
        ]
        return joined(kinds, 1)


def _of_kind(
    model: KernelModel, batches: list[Batch], chosen: list[Data], kind: GraphDistance, **options: Any
) -> ot.Diagnosis:
    others = with_description(chosen, kind.nodes)
    found = [
        pair_details(
            model.described_batch(kind.nodes, **batch.inputs),
            others,
            alpha=kind.alpha,
            node_cost=kind.node_cost,
            num_threads=solver_threads(model.num_threads) or None,
            **options,
        ).diagnosis
        for batch in batches
    ]
    return joined(found, 0)


def joined(parts: list[ot.Diagnosis], dim: int) -> ot.Diagnosis:
    """Concatenate diagnoses along a dimension."""
    return ot.Diagnosis(*(torch.cat(columns, dim) for columns in zip(*parts, strict=True)))

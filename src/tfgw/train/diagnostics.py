"""Diagnostics of a model's distances on a dataset: invariance, local minima, lower bounds."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw import ot
from tfgw.datasets import GraphDataset
from tfgw.datasets.canonical import reordered
from tfgw.nn import KernelModel, TFGWModel
from tfgw.nn.threads import networks_on_one_thread
from tfgw.train.batches import Batch
from tfgw.train.evaluate import BATCH_SIZE, embeddings, evaluation_mode, store_for
from tfgw.train.kernel_diagnostics import joined, kernel_diagnosis
from tfgw.train.model_file import TrainedModel

SAME = 1e-9
"""Relative change below which two distances count as equal."""


class ModelCheck(NamedTuple):
    """Results of :func:`check_model` for B graphs and K templates, all ``(B, K)``.

    The templates of a kernel machine are some of its training graphs, once for each kind of distance
    (:func:`tfgw.train.kernel_diagnostics.kernel_diagnosis`).

    Attributes:
        distances: Distances as the model computes them.
        renumbered: Largest relative change of a distance when the nodes of its graph are renumbered.
        diagnosis: Diagnosis with the model's number of starts.
        thorough: Diagnosis with more starts.
    """

    distances: Tensor
    renumbered: Tensor
    diagnosis: ot.Diagnosis
    thorough: ot.Diagnosis

    @property
    def above_best(self) -> Tensor:
        """Excess of the model's distances over those of the thorough solve, relative to the latter."""
        return relative(self.diagnosis.distances - self.thorough.distances, self.thorough.distances).clamp_min(0)


def check_model(
    trained: TrainedModel, dataset: GraphDataset, *, n_starts: int = 16, renumberings: int = 1, seed: int = 0
) -> ModelCheck:
    """Compare the distances of ``trained`` with those of renumbered graphs, and with those of a solve with more starts.

    Args:
        trained: The model, with its preprocessing.
        dataset: Graphs as loaded.
        n_starts: Starts of the thorough solve.
        renumberings: Random node orders to try.
        seed: Random seed for the node orders.
    """
    prepared = trained.preprocessing(dataset)
    distances = _distances(trained, prepared)
    rng = np.random.default_rng(seed)
    changes = torch.zeros_like(distances)
    for _ in range(renumberings):
        others = GraphDataset.from_graphs([_renumbered(graph, rng) for graph in dataset], name=dataset.name)
        change = _distances(trained, trained.preprocessing(others)) - distances
        changes = torch.maximum(changes, relative(change.abs(), distances))
    return ModelCheck(
        distances=distances,
        renumbered=changes,
        diagnosis=_diagnose(trained, prepared, starts_of(trained)),
        thorough=_diagnose(trained, prepared, n_starts),
    )


def starts_of(trained: TrainedModel) -> int:
    """Return the number of solver starts of a model."""
    model = trained.model
    return model.config.n_starts if isinstance(model, KernelModel) else trained.members[0].pool.n_starts


def relative(difference: Tensor, distances: Tensor) -> Tensor:
    """Differences relative to the distances, or absolute where a distance is 0 up to rounding."""
    return difference / torch.where(distances > 1e-12, distances, 1.0)


def _renumbered(graph: Data, rng: np.random.Generator) -> Data:
    return reordered(graph.clone(), torch.from_numpy(rng.permutation(graph.num_nodes)))


def _distances(trained: TrainedModel, prepared: GraphDataset) -> Tensor:
    if isinstance(trained.model, KernelModel):
        return kernel_diagnosis(trained.model, prepared, starts_of(trained), lower_bounds=False).distances
    return embeddings(trained.model, prepared).double().cpu()


def _diagnose(trained: TrainedModel, prepared: GraphDataset, n_starts: int) -> ot.Diagnosis:
    if isinstance(trained.model, KernelModel):
        return kernel_diagnosis(trained.model, prepared, n_starts)
    with evaluation_mode(trained.model), networks_on_one_thread():
        batches = list(store_for(trained.model, prepared).in_order(BATCH_SIZE))
        parts = [joined([_diagnose_batch(model, batch, n_starts) for batch in batches], 0) for model in trained.members]
    return joined(parts, 1)


def _diagnose_batch(model: TFGWModel, batch: Batch, n_starts: int) -> ot.Diagnosis:
    inputs = dict(batch.inputs)
    x = model.encoder(inputs.pop("x"), inputs["edge_index"])
    return model.pool.diagnose(x, n_starts=n_starts, **inputs)

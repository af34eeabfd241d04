"""Evaluate a trained model on a dataset."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import InMemoryDataset

from tfgw.nn.threads import networks_on_one_thread
from tfgw.train.batches import GraphStore
from tfgw.train.tasks import Task, sums

BATCH_SIZE = 256


class Evaluation(NamedTuple):
    """Mean loss and mean score over graphs; see :func:`tfgw.train.tasks.sums`."""

    loss: float
    score: float


def evaluate(model: nn.Module, dataset: InMemoryDataset, *, task: Task, batch_size: int = BATCH_SIZE) -> Evaluation:
    """Compute the mean loss and score of ``model`` on ``dataset``."""
    store = store_for(model, dataset)
    if store.y is None:
        raise ValueError("dataset: the graphs have no targets y")
    total = sums(task, outputs(model, dataset, batch_size=batch_size), store.y.to(store.device))
    return Evaluation(float(total.loss) / len(store), float(total.score) / len(store))


def outputs(model: nn.Module, dataset: InMemoryDataset, *, batch_size: int = BATCH_SIZE) -> Tensor:
    """Compute the outputs of ``model`` for each graph, ``(num_graphs, out_channels)``."""
    return _over_batches(model, model, dataset, batch_size)


def embeddings(model: nn.Module, dataset: InMemoryDataset, *, batch_size: int = BATCH_SIZE) -> Tensor:
    """``model.embed`` of each graph: for a TFGW model its distances, ``(num_graphs, num_templates)``."""
    return _over_batches(model, cast(Callable[..., Tensor], model.embed), dataset, batch_size)


def readouts(model: nn.Module, dataset: InMemoryDataset, *, batch_size: int = BATCH_SIZE) -> Tensor:
    """Compute the input of the head of a TFGW model for each graph, ``(num_graphs, channels)``."""
    return _over_batches(model, cast(Callable[..., Tensor], model.readout), dataset, batch_size)


def _over_batches(
    model: nn.Module, compute: Callable[..., Tensor], dataset: InMemoryDataset, batch_size: int
) -> Tensor:
    batches = store_for(model, dataset).in_order(batch_size)
    with evaluation_mode(model), networks_on_one_thread():
        return torch.cat([compute(**batch.inputs) for batch in batches])


def store_for(model: nn.Module, dataset: InMemoryDataset) -> GraphStore:
    """Create a store whose batches have the precision and device of ``model``."""
    parameter = next(model.parameters())
    return GraphStore(dataset, dtype=parameter.dtype, device=parameter.device)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Disable gradients and dropout inside the block, and restore the mode of the model afterwards."""
    was_training = model.training
    if was_training:  # switching modes takes longer than evaluating a small graph
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            model.train()

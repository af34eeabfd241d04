"""Batches that are gathered from a concatenated dataset.

The dataset is concatenated once into a few long tensors, and a batch of any of its graphs takes a few gather
operations. This takes a fraction of a millisecond, while collating ``Data`` objects takes as long as a solve.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from tfgw.datasets import GraphDataset, as_graph_dataset

GRAPH_WEIGHT = "graph_weight"
"""Graph attribute with the weight of a graph in the training loss."""

OPTIONAL_INPUTS = ("edge_weight", "structure", "node_weights")


class Batch(NamedTuple):
    """A batch of graphs; call a model as ``model(**batch.inputs)``."""

    inputs: dict[str, Any]
    y: Tensor | None
    weights: Tensor | None = None  # weights of the graphs in the training loss


class GraphStore:
    """A concatenated dataset, from which batches are gathered.

    Args:
        dataset: A dataset or list of graphs with ``x``, ``edge_index``, and optionally ``y``, ``edge_weight``,
            ``structure`` (flat, as :class:`tfgw.datasets.ShortestPaths` stores it), ``node_weights`` and
            ``graph_weight``.
        dtype: Floating-point type of the batches.
        device: Device of the batches.
    """

    def __init__(
        self, dataset: InMemoryDataset | Sequence[Data], *, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        dataset = GraphDataset.of(dataset) if isinstance(dataset, InMemoryDataset) else as_graph_dataset(dataset)
        stacked = dataset.stacked
        if not len(dataset):
            raise ValueError("dataset: has no graphs")
        if stacked.get("x") is None:
            raise ValueError("dataset: the graphs have no features x; use tfgw.datasets.from_data_list to create them")
        self.dtype, self.device = dtype, device
        self.tensors = {key: tensor for key, tensor in stacked.items() if key in dataset.slices}
        self._bounds = {key: torch.as_tensor(dataset.slices[key]) for key in self.tensors}
        self._is_whole = dataset.is_whole
        self.positions = torch.arange(len(dataset)) if dataset.is_whole else torch.tensor(dataset.positions)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def y(self) -> Tensor | None:
        """Targets of all graphs."""
        return self.tensors["y"][self.positions] if "y" in self.tensors else None

    def batch(self, graphs: Tensor) -> Batch:
        """Return a batch of the graphs with these indices, in this order."""
        chosen = self.positions[graphs]
        nodes = self.lengths("x", chosen)
        edges = self.lengths("edge_index", chosen)
        first_node = nodes.cumsum(0) - nodes
        edge_index = self._rows("edge_index", chosen) + first_node.repeat_interleave(edges)
        inputs: dict[str, Any] = {
            "x": self._floats("x", chosen),
            "edge_index": edge_index.to(self.device),
            "batch": torch.arange(len(chosen)).repeat_interleave(nodes).to(self.device),
            "batch_size": len(chosen),
        }
        inputs |= {key: self._floats(key, chosen) for key in OPTIONAL_INPUTS if key in self.tensors}
        y = self.tensors["y"][chosen].to(self.device) if "y" in self.tensors else None
        weights = self._floats(GRAPH_WEIGHT, chosen) if GRAPH_WEIGHT in self.tensors else None
        return Batch(inputs, y, weights)

    def in_order(self, batch_size: int) -> Iterator[Batch]:
        """Iterate over all graphs once, in their order."""
        if self._is_whole and len(self) <= batch_size:
            yield self._everything()
            return
        for graphs in torch.arange(len(self)).split(batch_size):
            yield self.batch(graphs)

    def _everything(self) -> Batch:
        """Return all graphs as one batch; they are already concatenated."""
        # np.repeat is three times as fast as PyTorch on a small graph.
        nodes, edges = self._bounds["x"].numpy(), self._bounds["edge_index"].numpy()
        shift = torch.from_numpy(np.repeat(nodes[:-1], edges[1:] - edges[:-1]))
        batch = torch.from_numpy(np.repeat(np.arange(len(self)), nodes[1:] - nodes[:-1]))
        inputs: dict[str, Any] = {
            "x": self.tensors["x"].to(self.device, self.dtype),
            "edge_index": (self.tensors["edge_index"] + shift).to(self.device),
            "batch": batch.to(self.device),
            "batch_size": len(self),
        }
        optional = (key for key in OPTIONAL_INPUTS if key in self.tensors)
        inputs |= {key: self.tensors[key].to(self.device, self.dtype) for key in optional}
        y = self.tensors["y"].to(self.device) if "y" in self.tensors else None
        weights = self.tensors[GRAPH_WEIGHT].to(self.device, self.dtype) if GRAPH_WEIGHT in self.tensors else None
        return Batch(inputs, y, weights)

    def lengths(self, key: str, chosen: Tensor) -> Tensor:
        """Return the number of rows of a concatenated tensor for each of the chosen graphs."""
        return self._bounds[key][chosen + 1] - self._bounds[key][chosen]

    def _rows(self, key: str, chosen: Tensor) -> Tensor:
        """Return the rows of a concatenated tensor for the chosen graphs."""
        lengths = self.lengths(key, chosen)
        shift = self._bounds[key][chosen] - (lengths.cumsum(0) - lengths)
        rows = torch.arange(int(lengths.sum())) + shift.repeat_interleave(lengths)
        return self.tensors[key].index_select(1 if key == "edge_index" else 0, rows)

    def _floats(self, key: str, chosen: Tensor) -> Tensor:
        return self._rows(key, chosen).to(self.device, self.dtype)


def epoch_batches(order: Tensor, batch_size: int, *, smallest: int) -> list[Tensor]:
    """Split an order of graphs into batches. A last batch smaller than ``smallest`` is merged with the previous one."""
    batches = list(order.split(batch_size))
    if len(batches) > 1 and len(batches[-1]) < smallest:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def balanced_batches(classes: Tensor, batch_size: int, *, rng: np.random.Generator) -> list[Tensor]:
    """Draw as many batches as a pass over all graphs has, each with equally many graphs of each class.

    Batches are drawn independently of each other. Within a batch, a graph is drawn again only after all graphs of its
    class. The size is rounded down to a multiple of the number of classes, but not to 0.
    """
    members = [np.flatnonzero(classes.numpy() == label) for label in classes.unique().tolist()]
    per_class = max(1, min(batch_size, len(classes)) // len(members))

    def draw() -> Tensor:
        rounds = [-(-per_class // len(own)) for own in members]
        chosen = [
            np.concatenate([rng.permutation(own) for _ in range(count)])[:per_class]
            for own, count in zip(members, rounds, strict=True)
        ]
        return torch.from_numpy(rng.permutation(np.concatenate(chosen)))

    return [draw() for _ in range(-(-len(classes) // batch_size))]


def shuffled(size: int, *, rng: np.random.Generator, classes: Tensor | None = None) -> Tensor:
    """Return a random order of graphs; with ``classes``, every part of it has the class proportions of the whole.

    To do so, spread the graphs of each class evenly over [0, 1) in random order, and sort all of them.
    """
    place = rng.random(size)
    if classes is not None:
        for label in classes.unique().tolist():
            members = np.flatnonzero(classes.numpy() == label)
            place[members] = (rng.permutation(len(members)) + rng.random(len(members))) / len(members)
    return torch.from_numpy(np.argsort(place, kind="stable"))

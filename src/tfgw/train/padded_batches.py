"""Batches of a fixed size, cut out of a dataset by its device alone: a CUDA graph can replay that for other graphs."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.nn.padding import Rows
from tfgw.train.batches import GraphStore

INPUTS = ("x", "edge_index", "edge_weight", "node_weights")
SPREAD = 4.0
"""Standard deviations by which a batch may be larger than the average one and still has room."""


class Room(NamedTuple):
    """How many nodes and edges a padded batch has."""

    nodes: int
    edges: int

    @classmethod
    def of(cls, store: GraphStore, batches: list[Tensor]) -> "Room":
        """Enough for these batches of equally many graphs, and for all but one in thousands of others."""
        nodes, edges = (_largest_sum(lengths, batches) for lengths in _lengths(store))
        return cls(nodes + 2, edges)


class PaddedBatch(NamedTuple):
    """Call a model as ``model(**batch.inputs)`` where it is :func:`tfgw.nn.padding.padded` by ``batch.rows``."""

    inputs: dict[str, Any]
    y: Tensor
    rows: Rows


def needed(store: GraphStore) -> dict[str, Tensor]:
    """What the graphs of a store have that a padded batch is made of."""
    return {key: store.tensors[key] for key in INPUTS if key in store.tensors}


class PaddedStore:
    """The graphs of a store, which have targets, on its device.

    Behind the nodes of a batch come others without features, at least two, whose graph is ``batch_size``. Edges behind
    those of the batch lead from the last node but one to the last, so that sums over edges stay small in all but one.
    """

    def __init__(self, store: GraphStore) -> None:
        self.device = store.device
        self.nodes, self.edges = _lengths(store)
        self._tensors = {
            key: tensor.to(store.device, None if key == "edge_index" else store.dtype)
            for key, tensor in needed(store).items()
        }
        self._parts = {
            key: _Parts(*(t.to(store.device) for t in (store.bounds[key][store.positions], lengths)))
            for key, lengths in (("x", self.nodes), ("edge_index", self.edges))
        }
        self._y = store.tensors["y"][store.positions].to(store.device)

    def has_room(self, graphs: Tensor, room: Room) -> bool:
        """Whether a batch of the graphs with these numbers has room."""
        return int(self.nodes[graphs].sum()) + 2 <= room.nodes and int(self.edges[graphs].sum()) <= room.edges

    def batch(self, graphs: Tensor, room: Room) -> PaddedBatch:
        """The graphs with these numbers, a tensor on the device, in this order; they have room."""
        nodes, edges = self._places("x", graphs, room.nodes), self._places("edge_index", graphs, room.edges)
        x = torch.where(nodes.is_there.unsqueeze(1), self._tensors["x"].index_select(0, nodes.row), 0)
        ends = self._tensors["edge_index"].index_select(1, edges.row) + nodes.begin.index_select(0, edges.graph)
        padding = torch.arange(room.nodes - 2, room.nodes, device=x.device).unsqueeze(1)
        inputs: dict[str, Any] = {
            "x": x,
            "edge_index": torch.where(edges.is_there, ends, padding),
            "batch": torch.where(nodes.is_there, nodes.graph, len(graphs)),
            "batch_size": len(graphs),
        }
        for key, places in (("edge_weight", edges), ("node_weights", nodes)):
            if key in self._tensors:
                inputs[key] = self._tensors[key].index_select(0, places.row)
        return PaddedBatch(inputs, self._y.index_select(0, graphs), Rows.where(nodes.is_there.unsqueeze(1).to(x)))

    def _places(self, key: str, graphs: Tensor, room: int) -> "_Places":
        first, length = (t.index_select(0, graphs) for t in self._parts[key])
        end = length.cumsum(0)
        begin = end - length
        place = torch.arange(room, device=end.device)
        is_there = place < end[-1]
        graph = torch.searchsorted(end, place, right=True).clamp_max(len(graphs) - 1)
        row = place + (first - begin).index_select(0, graph)
        return _Places(is_there, graph, torch.where(is_there, row, 0), begin)


class _Parts(NamedTuple):
    """The part of each graph in a tensor of the dataset: its first row, and how many there are."""

    first: Tensor
    length: Tensor


class _Places(NamedTuple):
    """Where the nodes or edges of a padded batch come from.

    Attributes:
        is_there: False for padding.
        graph: Its number in the batch; of padding, any.
        row: In the tensors of the dataset; of padding, any.
        begin: Of each graph, its first node or edge in the batch.
    """

    is_there: Tensor
    graph: Tensor
    row: Tensor
    begin: Tensor


def _lengths(store: GraphStore) -> tuple[Tensor, Tensor]:
    """Nodes and edges of each graph."""
    return store.lengths("x", store.positions), store.lengths("edge_index", store.positions)


def _largest_sum(lengths: Tensor, batches: list[Tensor]) -> int:
    """What the lengths of a batch drawn at random hardly ever add up to, and those of the given batches do not."""
    size, lengths = len(batches[0]), lengths.double()
    likely = size * lengths.mean() + SPREAD * size**0.5 * lengths.std(correction=0)
    possible = lengths.topk(size).values.sum()
    return int(max(torch.minimum(likely, possible), *(lengths[graphs].sum() for graphs in batches)).ceil())

"""Batches of a fixed size, cut out of a dataset by its device alone: a CUDA graph can replay that for other graphs."""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from tfgw.nn.padding import Rows
from tfgw.train.batches import GraphStore

SPREAD = 4.0
"""Standard deviations by which a batch may be larger than the average one and still has room."""


class Room(NamedTuple):
    """How many nodes and edges a padded batch has."""

    nodes: int
    edges: int

    @classmethod
    def of(cls, store: GraphStore, batches: list[Tensor]) -> "Room":
        """Enough for these batches of equally many graphs, and for all but one in thousands of others."""
        nodes, edges = (_largest_sum(lengths, batches) for lengths in lengths_of(store))
        return cls(nodes + 2, edges)


class PaddedBatch(NamedTuple):
    """Call a model as ``model(**batch.inputs)`` where it is :func:`tfgw.nn.padding.padded` by ``batch.rows``."""

    inputs: dict[str, Any]
    y: Tensor
    rows: Rows


class PaddedStore:
    """The graphs of a store, which have targets, end to end on its device.

    Behind the nodes of a batch come others without features, at least two, whose graph is ``batch_size``. Edges behind
    those of the batch lead from the last node but one to the last, so that sums over edges stay small in all but one.
    """

    def __init__(self, store: GraphStore) -> None:
        self.device = store.device
        self.nodes, self.edges = lengths_of(store)
        self._nodes_there, self._edges_there = (lengths.to(store.device) for lengths in (self.nodes, self.edges))
        self._all = store.batch(torch.arange(len(store)))

    def has_room(self, graphs: Tensor, room: Room) -> bool:
        """Whether a batch of the graphs with these numbers has room."""
        return int(self.nodes[graphs].sum()) + 2 <= room.nodes and int(self.edges[graphs].sum()) <= room.edges

    def batch(self, graphs: Tensor, room: Room) -> PaddedBatch:
        """The graphs with these numbers, a tensor on the device, in this order; they have room."""
        given, y = self._all.inputs, cast(Tensor, self._all.y)
        nodes = _places(self._nodes_there, graphs, room.nodes)
        edges = _places(self._edges_there, graphs, room.edges)
        is_node = nodes.is_there.unsqueeze(1)
        x = torch.where(is_node, given["x"].index_select(0, nodes.row), 0)
        ends = given["edge_index"].index_select(1, edges.row) + nodes.moved.index_select(0, edges.graph)
        padding = torch.arange(room.nodes - 2, room.nodes, device=x.device).unsqueeze(1)
        inputs: dict[str, Any] = {
            "x": x,
            "edge_index": torch.where(edges.is_there, ends, padding),
            "batch": torch.where(nodes.is_there, nodes.graph, len(graphs)),
            "batch_size": len(graphs),
        }
        for key, places in (("edge_weight", edges), ("node_weights", nodes)):
            if key in given:
                inputs[key] = given[key].index_select(0, places.row)
        return PaddedBatch(inputs, y.index_select(0, graphs), Rows.where(is_node.to(x)))


class _Places(NamedTuple):
    """Where the nodes or edges of a padded batch come from.

    Attributes:
        is_there: False for padding.
        graph: Its number in the batch; of padding, any.
        row: Among those of all graphs; of padding, any.
        moved: Of each graph, how far it is behind where it is among all.
    """

    is_there: Tensor
    graph: Tensor
    row: Tensor
    moved: Tensor


def _places(lengths: Tensor, graphs: Tensor, room: int) -> _Places:
    length, end_among_all = (t.index_select(0, graphs) for t in (lengths, lengths.cumsum(0)))
    end = length.cumsum(0)
    moved = end - end_among_all
    place = torch.arange(room, device=end.device)
    is_there = place < end[-1]
    graph = torch.searchsorted(end, place, right=True).clamp_max(len(graphs) - 1)
    return _Places(is_there, graph, torch.where(is_there, place - moved.index_select(0, graph), 0), moved)


def lengths_of(store: GraphStore) -> tuple[Tensor, Tensor]:
    """Nodes and edges of each graph."""
    return store.lengths("x", store.positions), store.lengths("edge_index", store.positions)


def _largest_sum(lengths: Tensor, batches: list[Tensor]) -> int:
    """What the lengths of a batch drawn at random hardly ever add up to, and those of the given batches do not."""
    size, lengths = len(batches[0]), lengths.double()
    likely = size * lengths.mean() + SPREAD * size**0.5 * lengths.std(correction=0)
    possible = lengths.topk(size).values.sum()
    return int(max(torch.minimum(likely, possible), *(lengths[graphs].sum() for graphs in batches)).ceil())

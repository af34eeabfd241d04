"""Batches of a fixed size, gathered from a dataset on the GPU, so that a CUDA graph can do it for any graphs."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from tfgw.nn.cuda import gather_kernel
from tfgw.nn.cuda.gather_kernel import Gathered, Spans
from tfgw.nn.padding import Rows
from tfgw.train.batches import GraphStore

SPREAD = 4.0
"""Standard deviations by which a batch may exceed the mean size and still fit."""


class Capacity(NamedTuple):
    """Nodes and edges of a padded batch."""

    nodes: int
    edges: int

    @classmethod
    def of(cls, store: GraphStore, batches: list[Tensor]) -> "Capacity":
        """Return a capacity for the given batches of equal size, which nearly all other such batches fit as well."""
        nodes, edges = (_largest_sum(lengths, batches) for lengths in lengths_of(store))
        return cls(nodes + 2, edges)


class PaddedBatch(NamedTuple):
    """Call a model as ``model(**batch.inputs)`` inside ``use_padding(batch.rows)`` (:mod:`tfgw.nn.padding`)."""

    inputs: dict[str, Any]
    y: Tensor
    rows: Rows
    weights: Tensor | None  # weights of the graphs in the training loss


class PaddedStore:
    """The graphs of a store, which have targets, concatenated on its device.

    At least two trailing nodes of a batch are padding: their features are 0 and their graph is ``batch_size``. Trailing
    edges are padding too. Each leads from a node of padding to the next one. They are spread evenly, because a GPU adds
    messages to the same node one after the other.
    """

    def __init__(self, store: GraphStore) -> None:
        self.device = store.device
        self.nodes, self.edges = lengths_of(store)
        self._node_spans, self._edge_spans = (
            Spans(lengths.to(self.device), lengths.cumsum(0).to(self.device)) for lengths in (self.nodes, self.edges)
        )
        self._all = store.batch(torch.arange(len(store)))
        self._has_links = _are_links(self._all.inputs["edge_index"])

    def fits(self, graphs: Tensor, capacity: Capacity) -> bool:
        """Whether a batch of the graphs with these indices fits the capacity."""
        return int(self.nodes[graphs].sum()) + 2 <= capacity.nodes and int(self.edges[graphs].sum()) <= capacity.edges

    def batch(self, graphs: Tensor, capacity: Capacity) -> PaddedBatch:
        """Return a batch of the graphs with these indices (a tensor on the device), in this order; it must fit."""
        y, weights = cast(Tensor, self._all.y), self._all.weights
        gather = gather_kernel.gather if gather_kernel.is_supported(self._all.inputs, graphs) else _gather
        found = gather(self._all.inputs, self._node_spans, self._edge_spans, graphs, *capacity)
        links = found.tensors["edge_index"] if self._has_links else None
        return PaddedBatch(
            {**found.tensors, "batch_size": len(graphs)},
            y.index_select(0, graphs),
            Rows(found.is_node, found.number, links),
            None if weights is None else weights.index_select(0, graphs),
        )


class _Sources(NamedTuple):
    """The nodes or edges of the dataset that the rows of a padded batch are copied from.

    Attributes:
        n_real: Number of those that are not padding.
        is_real: False for padding.
        graph: Number of the graph in the batch; arbitrary for padding.
        row: Row in the dataset; arbitrary for padding.
        shift: For each graph, its position in the batch minus that in the dataset.
    """

    n_real: Tensor
    is_real: Tensor
    graph: Tensor
    row: Tensor
    shift: Tensor


def _gather(
    dataset: Mapping[str, Tensor],
    node_spans: Spans,
    edge_spans: Spans,
    graphs: Tensor,
    node_rows: int,
    edge_rows: int,
) -> Gathered:
    """Do the same as :func:`tfgw.nn.cuda.gather_kernel.gather` with PyTorch operations."""
    nodes, edges = _sources(node_spans, graphs, node_rows), _sources(edge_spans, graphs, edge_rows)
    is_node = nodes.is_real.unsqueeze(1)
    x = torch.where(is_node, dataset["x"].index_select(0, nodes.row), 0)
    ends = dataset["edge_index"].index_select(1, edges.row) + nodes.shift.index_select(0, edges.graph)
    tensors = {
        "x": x,
        "edge_index": torch.where(edges.is_real, ends, _path_through_padding(nodes, edges)),
        "batch": torch.where(nodes.is_real, nodes.graph, len(graphs)),
    }
    for key, sources in (("edge_weight", edges), ("node_weights", nodes)):
        if key in dataset:
            tensors[key] = dataset[key].index_select(0, sources.row)
    is_node = is_node.to(x)
    return Gathered(tensors, is_node, is_node.sum())


def _sources(spans: Spans, graphs: Tensor, capacity: int) -> _Sources:
    length, end_in_dataset = (t.index_select(0, graphs) for t in spans)
    end = length.cumsum(0)
    shift = end - end_in_dataset
    position = torch.arange(capacity, device=end.device)
    n_real = end[-1]
    is_real = position < n_real
    graph = torch.searchsorted(end, position, right=True).clamp_max(len(graphs) - 1)
    return _Sources(n_real, is_real, graph, torch.where(is_real, position - shift.index_select(0, graph), 0), shift)


def _are_links(edge_index: Tensor) -> bool:
    """Whether edges are sorted and each has its reverse."""
    forward, backward = edge_index.unbind(), edge_index.flip(0).unbind()
    count = int(edge_index.max()) + 1 if edge_index.numel() else 0
    keys, reversed_keys = (first * count + second for first, second in (forward, backward))
    return bool((keys.diff() >= 0).all()) and torch.equal(keys, reversed_keys.sort().values)


def _path_through_padding(nodes: _Sources, edges: _Sources) -> Tensor:
    """Return the ends of edges in padding, ``(2, capacity)``, in ascending order; those of real edges are arbitrary."""
    capacity = len(edges.is_real)
    steps, spare = len(nodes.is_real) - 1 - nodes.n_real, (capacity - edges.n_real).clamp_min(1)
    place = torch.arange(capacity, device=steps.device) - edges.n_real
    source = nodes.n_real + place * steps // spare
    return torch.stack([source, source + 1])


def lengths_of(store: GraphStore) -> tuple[Tensor, Tensor]:
    """Nodes and edges of each graph."""
    return store.lengths("x", store.positions), store.lengths("edge_index", store.positions)


def _largest_sum(lengths: Tensor, batches: list[Tensor]) -> int:
    """Return an upper bound for the total length of the given batches and of nearly every random batch."""
    size, lengths = len(batches[0]), lengths.double()
    likely = size * lengths.mean() + SPREAD * size**0.5 * lengths.std(correction=0)
    possible = lengths.topk(size).values.sum()
    return int(max(torch.minimum(likely, possible), *(lengths[graphs].sum() for graphs in batches)).ceil())

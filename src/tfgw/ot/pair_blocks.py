"""Blocks of pairs (graphs × templates) for the GPU kernels.

Each template is padded to the largest of its block, so the templates of a block have about equal size. Graphs are
sorted by size, so the graphs of a block and their edges are slices of tensors that are already on the GPU.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.pair_solver import PairGrid, PairOptions
from tfgw.ot.ragged import Part, RaggedSet, stacked
from tfgw.ot.solve import fgw

TEMPLATES = 64
"""Maximum number of templates per block."""
ENTRIES = 2**27
"""Maximum number of cost matrix entries per block, 16 bytes each. A single graph may exceed it."""
CLASSES = (16, 32, 64, 128, 256, 512)
"""Numbers of nodes to which the kernels pad templates. Larger templates are solved on the CPU."""


class Block(NamedTuple):
    """Templates ``first`` to ``last``, all of one size class, and graphs ``begin`` to ``end`` (ends exclusive)."""

    first: int
    last: int
    begin: int
    end: int


class PairBlocks:
    """All pairs of a grid on a device, except for pairs of two graphs with more than 512 nodes.

    Args:
        graphs: The graphs.
        grid: The pairs.
        options: Solver options, with a single start.
        device: Device of the solver.
    """

    def __init__(self, graphs: RaggedSet, grid: PairGrid, options: PairOptions, device: torch.device) -> None:
        self._parts, self._sizes, self._grid = graphs.parts, graphs.sizes, grid
        self._options, self._device = options, device

    def __iter__(self) -> Iterator[tuple[np.ndarray, Callable[[], np.ndarray]]]:
        """Yield the pairs of each block, ``(num_pairs, 2)``, and a function that solves them. Blocks are disjoint."""
        rows, columns = self._grid
        yield from self._compare(rows, columns, np.zeros(len(self._parts), dtype=bool))
        if len(rows) != len(columns) or (rows != columns).any():
            common = np.isin(np.arange(len(self._parts)), np.intersect1d(rows, columns))
            yield from self._compare(columns, rows, common)

    def rest(self) -> PairGrid:
        """Return the pairs that are not in any block."""
        return PairGrid(*(ranks[self._sizes[ranks] > CLASSES[-1]] for ranks in self._grid))

    def _compare(
        self, templates: np.ndarray, graphs: np.ndarray, is_done: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Callable[[], np.ndarray]]]:
        """Yield pairs of templates with graphs of higher rank, except for pairs in which both are done."""
        templates = templates[self._sizes[templates] <= CLASSES[-1]]
        on_device = _OnDevice([self._parts[rank] for rank in graphs], self._device)
        for block in self._blocks(templates, graphs):
            columns, rows = templates[block.first : block.last], graphs[block.begin : block.end]
            is_wanted = (rows[None, :] > columns[:, None]) & ~(is_done[rows][None, :] & is_done[columns][:, None])
            pairs = np.stack(np.broadcast_arrays(columns[:, None], rows[None, :]), axis=-1)[is_wanted]
            if len(pairs):
                yield pairs, partial(self._solve, on_device.graphs(block.begin, block.end), columns, is_wanted)

    def _solve(self, graphs: GraphBatch, templates: np.ndarray, is_wanted: np.ndarray) -> np.ndarray:
        found = fgw(
            graphs,
            _padded([self._parts[rank] for rank in templates], self._device),
            self._options.alpha,
            max_iter=self._options.max_iter,
            tol=self._options.tol,
            plans=None,
        )
        return found.distances.T.cpu().numpy()[is_wanted]

    def _blocks(self, templates: np.ndarray, graphs: np.ndarray) -> Iterator[Block]:
        classes, ends = np.searchsorted(CLASSES, self._sizes[templates]), np.cumsum(self._sizes[graphs])
        first = 0
        while first < len(templates):
            last = min(first + TEMPLATES, int(np.searchsorted(classes, classes[first], side="right")))
            nodes = ENTRIES // ((last - first) * CLASSES[classes[first]])
            begin = int(np.searchsorted(graphs, templates[first], side="right"))
            while begin < len(graphs):
                before = ends[begin - 1] if begin else 0
                end = max(begin + 1, int(np.searchsorted(ends, before + nodes, side="right")))
                yield Block(first, last, begin, end)
                begin = end
            first = last


class _OnDevice:
    """All graphs of a list on a device. Consecutive graphs form a batch without a copy of their features."""

    def __init__(self, parts: Sequence[Part], device: torch.device) -> None:
        fields = stacked(parts)
        self._ptr = fields.pop("ptr")
        counts = [0 if part.edge_index is None else part.edge_index.shape[1] for part in parts]
        self._edges = np.cumsum([0, *counts])
        self._entries = np.cumsum([0, *(np.diff(self._ptr) ** 2)])
        self._fields: dict[str, Tensor | None] = {
            name: None if array is None else torch.from_numpy(array).to(device) for name, array in fields.items()
        }
        batch = np.repeat(np.arange(len(parts)), np.diff(self._ptr))
        self._fields["batch"] = torch.from_numpy(batch).to(device)

    def graphs(self, begin: int, end: int) -> GraphBatch:
        nodes, edges = (slice(places[begin], places[end]) for places in (self._ptr, self._edges))
        entries = slice(self._entries[begin], self._entries[end])
        slices = {"edge_weight": edges, "structure": entries}
        shifts = {"batch": begin, "edge_index": int(self._ptr[begin])}
        fields: dict[str, Any] = {}
        for name, tensor in self._fields.items():
            if tensor is None:
                fields[name] = None
            elif name == "edge_index":
                fields[name] = tensor[:, edges] - shifts[name]
            else:
                fields[name] = tensor[slices.get(name, nodes)] - shifts.get(name, 0)
        return GraphBatch(batch_size=end - begin, **fields)


def _padded(parts: Sequence[Part], device: torch.device) -> Templates:
    """Convert graphs to templates, padded with nodes of weight 0 to the size of the largest graph."""
    count, nodes = len(parts), max(part.num_nodes for part in parts)
    features, weights = np.zeros((count, nodes, parts[0].x.shape[1])), np.zeros((count, nodes))
    structure = np.zeros((count, nodes, nodes))
    for number, part in enumerate(parts):
        n = part.num_nodes
        features[number, :n], weights[number, :n] = part.x, part.node_weights
        if part.structure is not None:
            structure[number, :n, :n] = part.structure
        elif part.edge_index is not None:
            structure[number][tuple(part.edge_index)] = 1 if part.edge_weight is None else part.edge_weight
    has_structure = parts[0].edge_index is not None or parts[0].structure is not None
    on_device = [torch.from_numpy(array).to(device) for array in (features, structure, weights)]
    return Templates(on_device[0], on_device[1] if has_structure else None, on_device[2])

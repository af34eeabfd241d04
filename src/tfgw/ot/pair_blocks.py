"""Blocks of pairs (templates × graphs) for the GPU kernels.

Each template is padded to the largest of its block, so the templates of a block have about equal size. Graphs are
sorted by size, so the graphs of a block and their edges are slices of tensors that are already on the GPU. Results are
copied to the host asynchronously, so the next block can be prepared meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tfgw.ot.backends import cuda
from tfgw.ot.backends.cuda.kernel_limits import LARGEST_FOR_STARTS, SIZE_CLASSES
from tfgw.ot.checks import problem_of
from tfgw.ot.cpu_fallback import warn_once
from tfgw.ot.dispatch import solve
from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.pair_solver import PairGrid, PairOptions
from tfgw.ot.problem import ProblemSize
from tfgw.ot.ragged import Part, RaggedSet, stacked
from tfgw.ot.starts import FRESH_STARTS, KEPT_MINIMA, STARTS_PER_ROUND, UNIFORM

TEMPLATES = 64
"""Maximum number of templates per block."""
ENTRIES = 2**27
"""Maximum number of cost matrix entries per block, 16 bytes each. A single graph may exceed it."""


def solves_on_gpu(device: torch.device) -> bool:
    """Whether the device is a GPU whose kernels solve blocks. Warns if it is a GPU without kernels."""
    if device.type == "cpu":
        return False
    index = torch.cuda.current_device() if device.index is None else device.index
    smallest = ProblemSize(num_graphs=1, num_nodes=1, num_templates=1, template_nodes=1)
    reason = cuda.unsupported_size(torch.device(device.type, index), smallest)
    if reason is not None:
        warn_once(reason)
    return reason is None


class _Range(NamedTuple):
    """Templates ``first`` to ``last``, all of one size class, and graphs ``begin`` to ``end`` (ends exclusive)."""

    first: int
    last: int
    begin: int
    end: int


@dataclass(frozen=True)
class PairBlock:
    """Pairs of some templates and some graphs.

    Attributes:
        templates: Ranks of the templates, ascending.
        graphs: Ranks of the graphs, ascending.
        is_wanted: Which of their pairs are in this block, ``(num_templates, num_graphs)``.
        solve: Begins to solve these pairs, given ``is_wanted``, and returns a function that waits for the distances, of
            the same shape. Those of other pairs are arbitrary.
    """

    templates: np.ndarray
    graphs: np.ndarray
    is_wanted: np.ndarray
    solve: Callable[[np.ndarray], Callable[[], np.ndarray]]

    def begin(self) -> Callable[[], np.ndarray]:
        """Begin to solve the pairs."""
        return self.solve(self.is_wanted)

    def only(self, pairs: np.ndarray) -> "PairBlock":
        """Return a block of those pairs that are among the given ones, ``(num_pairs, 2)``, with the template first.

        Their distances have the same bits as in this block.
        """
        columns, templates = _places(pairs[:, 0], self.templates)
        rows, graphs = _places(pairs[:, 1], self.graphs)
        inside = columns & rows
        is_wanted = np.zeros_like(self.is_wanted)
        is_wanted[templates[inside], graphs[inside]] = True
        return replace(self, is_wanted=is_wanted & self.is_wanted)

    @cached_property
    def num_pairs(self) -> int:
        """Number of pairs in this block."""
        return int(np.count_nonzero(self.is_wanted))

    @property
    def pairs(self) -> np.ndarray:
        """The pairs, ``(num_pairs, 2)``, in the order of ``is_wanted``."""
        templates, graphs = self.is_wanted.nonzero()
        return np.stack([self.templates[templates], self.graphs[graphs]], axis=1)


def _places(ranks: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each rank is among others, which ascend, and where."""
    places = np.minimum(np.searchsorted(among, ranks), len(among) - 1)
    return among[places] == ranks, places


class PairBlocks:
    """All pairs of a grid on a device, except for pairs of two graphs that are too large for a template.

    Args:
        graphs: The graphs.
        grid: The pairs.
        options: Solver options.
        device: Device of the solver.
    """

    def __init__(self, graphs: RaggedSet, grid: PairGrid, options: PairOptions, device: torch.device) -> None:
        self._parts, self._sizes, self._grid = graphs.parts, graphs.sizes, grid
        self._options, self._device = options, device
        is_single = options.n_starts == 1 and bool(options.start_kinds & UNIFORM)
        self._largest = SIZE_CLASSES[-1] if is_single else LARGEST_FOR_STARTS
        rounds = 0 if is_single else -(-options.n_starts // STARTS_PER_ROUND)
        # Numbers per entry: cost and gradient at first, then costs and walks of fresh starts, and gradients at minima.
        self._entries = ENTRIES * 2 // (2 + 2 * min(options.n_starts, FRESH_STARTS * rounds) + KEPT_MINIMA * rounds)

    def __iter__(self) -> Iterator[PairBlock]:
        """Yield disjoint blocks."""
        rows, columns = self._grid
        yield from self._compare(rows, columns, np.zeros(len(self._parts), dtype=bool))
        if len(rows) != len(columns) or (rows != columns).any():
            common = np.isin(np.arange(len(self._parts)), np.intersect1d(rows, columns))
            yield from self._compare(columns, rows, common)

    def contains(self, pairs: np.ndarray) -> np.ndarray:
        """Return whether each pair of the grid, with the template first, is in a block."""
        found: np.ndarray = self._sizes[pairs[:, 0]] <= self._largest
        return found

    def rest(self) -> PairGrid:
        """Return the pairs that are not in any block."""
        return PairGrid(*(ranks[self._sizes[ranks] > self._largest] for ranks in self._grid))

    def _compare(self, templates: np.ndarray, graphs: np.ndarray, is_done: np.ndarray) -> Iterator[PairBlock]:
        """Yield pairs of templates with graphs of higher rank, except for pairs in which both are done."""
        templates = templates[self._sizes[templates] <= self._largest]
        on_device = _OnDevice([self._parts[rank] for rank in graphs], self._device)
        for places in self._ranges(templates, graphs):
            columns, rows = templates[places.first : places.last], graphs[places.begin : places.end]
            is_wanted = rows[None, :] > columns[:, None]
            if is_done.any():
                is_wanted &= ~(is_done[rows][None, :] & is_done[columns][:, None])
            if is_wanted.any():
                yield PairBlock(columns, rows, is_wanted, self._solving(on_device, places, columns))

    def _solving(
        self, graphs: "_OnDevice", places: _Range, templates: np.ndarray
    ) -> Callable[[np.ndarray], Callable[[], np.ndarray]]:
        def begin(is_wanted: np.ndarray) -> Callable[[], np.ndarray]:
            skipped = None if is_wanted.all() else np.ascontiguousarray(~is_wanted.T).astype(np.uint8)
            problem = problem_of(
                graphs.graphs(places.begin, places.end),
                _padded([self._parts[rank] for rank in templates], self._device),
                self._options.alpha,
                max_iter=self._options.max_iter,
                tol=self._options.tol,
                n_starts=self._options.n_starts,
                start_kinds=self._options.start_kinds,
                skipped=None if skipped is None else torch.from_numpy(skipped).to(self._device),
            )
            return _copied_to_host(solve(problem, wanted=0).distances.T.contiguous())

        return begin

    def _ranges(self, templates: np.ndarray, graphs: np.ndarray) -> Iterator[_Range]:
        classes, ends = np.searchsorted(SIZE_CLASSES, self._sizes[templates]), np.cumsum(self._sizes[graphs])
        first = 0
        while first < len(templates):
            last = min(first + TEMPLATES, int(np.searchsorted(classes, classes[first], side="right")))
            nodes = self._entries // ((last - first) * SIZE_CLASSES[classes[first]])
            begin = int(np.searchsorted(graphs, templates[first], side="right"))
            while begin < len(graphs):
                before = ends[begin - 1] if begin else 0
                end = max(begin + 1, int(np.searchsorted(ends, before + nodes, side="right")))
                yield _Range(first, last, begin, end)
                begin = end
            first = last


def _copied_to_host(values: Tensor) -> Callable[[], np.ndarray]:
    """Begin to copy a tensor to the host, and return a function that waits for it."""
    if values.device.type != "cuda":
        return lambda: values.cpu().numpy()
    on_host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    on_host.copy_(values, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(values.device))

    def wait() -> np.ndarray:
        arrived.synchronize()
        return on_host.numpy()

    return wait


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

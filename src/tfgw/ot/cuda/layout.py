"""The structs that the kernels take (problem.cuh, backward.cuh), and the memory they point to.

Every member has 8 bytes: a pointer, a count or a number.
"""

from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZE_CLASSES = (16, 32, 64, 128)
"""Numbers of template nodes, padded, for which there are kernels."""

Words = NDArray[np.int64]


class Struct:
    """A struct by the names of its members. Its values are an array of 8-byte words, for a kernel its bytes."""

    def __init__(self, members: str) -> None:
        self.members = tuple(members.split())
        self.at = {name: place for place, name in enumerate(self.members)}

    def empty(self) -> Words:
        """Every member 0 or null."""
        return np.zeros(len(self.members), dtype=np.int64)

    def span(self, first: str, last: str) -> slice:
        """The members from one to another, both included."""
        return slice(self.at[first], self.at[last] + 1)


PROBLEM = Struct(
    "graphs nodes features edges templates columns "
    "batch x weights edge_index edge_weight dense cost template_structure template_x template_weights alpha start "
    "ptr graph_of order dense_at row_start row_length column edge_id value t_start t_length t_column t_edge_id t_value "
    "h square out_mean in_mean x_norm supply constant symmetric "
    "padded live_count live t_h t_mean_out t_mean_in t_norm demand C Ct mean ft t_square t_constant "
    "queue invalid scratch scratch_size "
    "max_iter starts tol weight_tolerance "
    "distance structure_cost feature_cost gap iterations status plan row_potential col_potential"
)

GRADIENTS = Struct(
    "grad structure_cost feature_cost plan row_potential col_potential "
    "x weights edge_weight dense template_structure template_x template_weights alpha structured shares share_count"
)

# What the first two kernels fill, by size; the first six lines are of 32-bit integers.
_PREPARED = (
    "ptr symmetric order",
    "graph_of row_start row_length t_start t_length",
    "column edge_id t_column t_edge_id",
    "live_count",
    "live",
    "queue",
    "dense_at constant",
    "h square out_mean in_mean x_norm supply",
    "value t_value",
    "t_h t_mean_out t_mean_in t_norm demand",
    "C Ct mean",
    "ft",
    "t_square",
    "t_constant",
)
_PREPARED_AT = [PROBLEM.at[name] for line in _PREPARED for name in line.split()]
_PREPARED_LINE = [number for number, line in enumerate(_PREPARED) for _ in line.split()]
_IS_PREPARED = PROBLEM.empty()
_IS_PREPARED[_PREPARED_AT] = 1
_COUNTS_AT = [PROBLEM.at[name] for name in ("graphs", "nodes", "features", "edges", "templates", "columns", "padded")]
QUEUE_SPARE = 12
"""Bytes from the start of ``queue`` to a word of it that no kernel reads."""


class Layout(NamedTuple):
    """How a problem of given sizes lies in memory."""

    words: Words
    """The struct with its counts, and with offsets where it points to prepared memory."""
    size: int
    """Bytes of that memory."""

    def words_at(self, address: int) -> Words:
        """The struct for prepared memory that begins at an address."""
        return self.words + address * _IS_PREPARED


@lru_cache(maxsize=1024)
def layout(graphs: int, nodes: int, features: int, edges: int, templates: int, columns: int, padded: int) -> Layout:
    """The layout of problems of these sizes."""
    rows = templates * padded
    integers = (graphs + 1, nodes + 1, edges, templates, rows, 4)
    doubles = (graphs + 1, nodes, edges, rows, rows * padded, rows * features, templates * columns, templates)
    sizes = [(count + 1) // 2 * 8 for count in integers] + [count * 8 for count in doubles]
    *offsets, size = accumulate(map(sizes.__getitem__, _PREPARED_LINE), initial=0)
    words = PROBLEM.empty()
    words[_PREPARED_AT] = offsets
    words[_COUNTS_AT] = graphs, nodes, features, edges, templates, columns, padded
    return Layout(words, size)


@lru_cache
def bits(number: float) -> int:
    """A double as the word that stands for it in a struct."""
    return int(np.float64(number).view(np.int64))


@cache
def size_class(columns: int) -> int | None:
    """Padded number of template nodes, or ``None`` where there are too many."""
    return next((size for size in SIZE_CLASSES if columns <= size), None)


def workspace_size(rows: int, padded: int) -> int:
    """Doubles that one pair's solve works in: ``Workspace::size`` of workspace.cuh."""
    entries, atoms, qp_memory = rows + padded, 32, 32 * 32 + 32 // 2
    return rows * padded * (8 + atoms) + 2 * entries * atoms + 6 * entries + atoms * atoms + qp_memory + 1

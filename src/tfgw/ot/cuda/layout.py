"""The structs that the kernels take (problem.cuh, backward.cuh), and the memory they point to.

Every member has 8 bytes: a pointer, a count or a number.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate
from struct import Struct as Format
from typing import NamedTuple

SIZE_CLASSES = (16, 32, 64, 128)
"""Numbers of template nodes, padded, for which there are kernels."""


class Struct:
    """A struct by the names of its members, in parts that are filled together."""

    def __init__(self, *parts: str, doubles: tuple[str, ...] = ()) -> None:
        self.parts = tuple(tuple(part.split()) for part in parts)
        self.members = tuple(member for part in self.parts for member in part)
        self._doubles = doubles
        self.bytes = self.bytes_of(*range(len(parts)))
        """The struct as a kernel takes it, for the values of all members."""

    def bytes_of(self, *parts: int) -> Callable[..., bytes]:
        """The same for the members of successive parts."""
        members = [member for part in parts for member in self.parts[part]]
        return Format("=" + "".join("d" if member in self._doubles else "q" for member in members)).pack


PROBLEM = Struct(
    "graphs nodes features edges templates columns",
    "batch x weights edge_index edge_weight dense cost template_structure template_x template_weights alpha start "
    "dense_size",
    # prepared by the first two kernels
    "entry t_entry packed full ptr graph_of order dense_at row_start row_length column value "
    "t_start t_length t_column t_value edge_id "
    "h square out_mean in_mean x_norm supply constant symmetric packed_row packed_begin "
    "padded live_count live t_h t_mean_out t_mean_in t_norm demand C Ct mean ft t_square t_constant queue",
    "invalid scratch scratch_size shared_size small_graph max_iter tol weight_tolerance",
    "distance structure_cost feature_cost gap iterations status plan row_potential col_potential",
    doubles=("tol", "weight_tolerance"),
)
PROBLEM_HEAD, PROBLEM_TAIL = PROBLEM.bytes_of(0, 1, 2), PROBLEM.bytes_of(3, 4)
"""The problem, the same for all its kernels; and what differs between them."""
STRUCTURE, ALPHA = map(PROBLEM.parts[1].index, ("template_structure", "alpha"))
PREPARED = PROBLEM.parts[2]
_PADDED, QUEUE = PREPARED.index("padded"), PREPARED.index("queue")
QUEUE_SPARE = 12
"""Bytes from the start of ``queue`` to a word of it that no kernel reads."""

SHARED_ENTRIES = Struct("templates places entries alpha_step", "where entry alpha structure alphas")
"""Of shared_entries.cu."""

GRADIENTS = Struct(
    "grad structure_cost feature_cost plan row_potential col_potential",
    "x weights edge_weight dense template_structure template_x template_weights alpha",
    "structured",
)
GRAD_STRUCTURE, GRAD_ALPHA = map(GRADIENTS.parts[1].index, ("template_structure", "alpha"))


def _doubles(
    graphs: int, nodes: int, features: int, edges: int, templates: int, columns: int, padded: int
) -> dict[str, int]:
    """Room that each prepared member takes, in words of 8 bytes."""
    rows = templates * padded
    halves = {  # 32-bit integers
        **dict.fromkeys(("ptr", "symmetric", "order"), graphs + 1),
        **dict.fromkeys(("graph_of", "row_start", "row_length", "t_start", "t_length"), nodes + 1),
        **dict.fromkeys(("column", "t_column", "edge_id"), edges),
        "packed_row": nodes,
        "packed_begin": nodes + graphs + 1,
        "live_count": templates,
        "live": rows,
        "queue": 6,
    }
    wholes = {
        **dict.fromkeys(("entry", "t_entry"), 2 * edges),  # at the beginning, where they are aligned to 16 bytes
        "packed": 2 * (edges + PACKED_ROWS * nodes),
        "full": FULL * edges,
        **dict.fromkeys(("dense_at", "constant"), graphs + 1),
        **dict.fromkeys(("h", "square", "out_mean", "in_mean", "x_norm", "supply"), nodes),
        **dict.fromkeys(("value", "t_value"), edges),
        **dict.fromkeys(("t_h", "t_mean_out", "t_mean_in", "t_norm", "demand"), rows),
        **dict.fromkeys(("C", "Ct", "mean"), rows * padded),
        "ft": rows * features,
        "t_square": templates * columns,
        "t_constant": templates,
        "padded": 0,  # a number, not a pointer
    }
    return wholes | {name: (entries + 1) // 2 for name, entries in halves.items()}


@lru_cache(maxsize=4096)
def prepared_offsets(*counts: int) -> tuple[int, ...]:
    """Where each prepared member begins in their memory, and the size of that, in bytes; counts as for `_doubles`."""
    room = _doubles(*counts)
    return tuple(accumulate((8 * room[name] for name in PREPARED), initial=0))


def prepared_addresses(offsets: tuple[int, ...], address: int, padded: int) -> list[int]:
    """The prepared members, in memory that begins at an address."""
    members = [address + offset for offset in offsets]
    members.pop()
    members[_PADDED] = padded
    return members


FULL, PACKED_ROWS = 4, 8
"""``kFull`` and ``kPackedRows`` of problem.cuh."""

GRADIENT_TILE = 64
"""``kTile`` of backward.cuh."""


@cache
def size_class(columns: int) -> int | None:
    """Padded number of template nodes, or ``None`` where there are too many."""
    return next((size for size in SIZE_CLASSES if columns <= size), None)


def workspace_size(rows: int, padded: int) -> int:
    """Doubles that one pair's solve works in: ``Workspace::size`` of workspace.cuh."""
    entries, atoms = rows + padded, 32
    return rows * padded * (6 + atoms) + 2 * entries * (1 + atoms) + 8 * entries + 3 * atoms * atoms + 64


class SolveShape(NamedTuple):
    """How the blocks of a solve share a multiprocessor."""

    per_processor: int
    """Blocks that a multiprocessor has at a time."""
    shared: int
    """Bytes of shared memory that each of them gets."""
    small_graph: int
    """Nodes of a graph that one of a block's warps solves on its own, at most."""


def solve_shape(shared: int, graphs: int, nodes: int, edges: int, columns: int, padded: int) -> SolveShape:
    """For graphs of this average size, and so many bytes of shared memory per multiprocessor.

    A graph of three times the average size is to have room in a block's shared memory (solve_block.cuh), and as many
    blocks as possible are to have room at a time.
    """
    if padded > 32:  # what is used most has room, the rest does not
        return SolveShape(MOST_BLOCKS, shared // MOST_BLOCKS - _RESERVED, 0)
    rows = -(-nodes // graphs)
    # workspace.cuh: plan, first basis and structure, then two matrices, or three of a small graph.
    per_row = 32 + 20 * edges // max(1, nodes) + 16 * padded
    fixed = 2560 + (16 + 8 * columns) * padded
    largest = _BLOCK + fixed + _LARGE_TREE + 3 * rows * per_row
    per_processor = max(1, min(MOST_BLOCKS, shared // (largest + _RESERVED)))
    block = (shared // per_processor - _RESERVED) // 16 * 16
    small = ((block - _BLOCK) // BLOCK_WARPS - fixed - _SMALL_TREE) // (per_row + 8 * padded)
    return SolveShape(per_processor, block, max(0, min(small, 64 - columns)))


BLOCK_WARPS, MOST_BLOCKS = 4, 2
"""``kBlockWarps`` of team.cuh, ``kSolveBlocks`` of solve_block.cuh."""
_RESERVED = 1 << 10
"""Bytes that each block takes besides."""
_BLOCK, _SMALL_TREE, _LARGE_TREE = 3 << 10, 64 * 20, 160 * 32

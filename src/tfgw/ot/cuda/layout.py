"""The structs that the kernels take (problem.cuh, backward.cuh), and the memory they point to.

Every member has 8 bytes: a pointer, a count or a number.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

SIZE_CLASSES = (16, 32, 64, 128)
"""Numbers of template nodes, padded, for which there are kernels."""


def _struct(name: str, members: str) -> type[ctypes.Structure]:
    numbers = {"tol": ctypes.c_double, "weight_tolerance": ctypes.c_double}
    fields = [(member, numbers.get(member, ctypes.c_int64)) for member in members.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


Problem = _struct(
    "Problem",
    "graphs nodes features edges templates columns "
    "batch x weights edge_index edge_weight dense cost template_structure template_x template_weights alpha start "
    "ptr graph_of order dense_at row_start row_length column edge_id value t_start t_length t_column t_edge_id t_value "
    "h square out_mean in_mean x_norm supply constant symmetric "
    "padded live_count live t_h t_mean_out t_mean_in t_norm demand C Ct mean ft t_square t_constant "
    "queue invalid scratch scratch_size "
    "max_iter starts tol weight_tolerance "
    "distance structure_cost feature_cost gap iterations status plan row_potential col_potential",
)

Gradients = _struct(
    "Gradients",
    "grad structure_cost feature_cost plan row_potential col_potential "
    "x weights edge_weight dense template_structure template_x template_weights alpha structured shares share_count",
)


def size_class(columns: int) -> int | None:
    """Padded number of template nodes, or ``None`` where there are too many."""
    return next((size for size in SIZE_CLASSES if columns <= size), None)


def pointer(tensor: Tensor | None) -> int:
    """Address of a tensor's first entry; 0, a null pointer, for none."""
    return 0 if tensor is None or tensor.numel() == 0 else tensor.data_ptr()


def prepared_memory(problem: Any, device: torch.device) -> Tensor:
    """Point the members that the first two kernels fill into one new piece of memory, which is returned."""
    nodes, edges, graphs = problem.nodes, problem.edges, problem.graphs
    count, padded = problem.templates, problem.padded
    halves = {  # 4 bytes per entry
        **dict.fromkeys(("ptr", "symmetric", "order"), graphs + 1),
        **dict.fromkeys(("graph_of", "row_start", "row_length", "t_start", "t_length"), nodes + 1),
        **dict.fromkeys(("column", "edge_id", "t_column", "t_edge_id"), edges),
        "live_count": count,
        "live": count * padded,
        "queue": 4,
    }
    wholes = {
        **dict.fromkeys(("dense_at", "constant"), graphs + 1),
        **dict.fromkeys(("h", "square", "out_mean", "in_mean", "x_norm", "supply"), nodes),
        **dict.fromkeys(("value", "t_value"), edges),
        **dict.fromkeys(("t_h", "t_mean_out", "t_mean_in", "t_norm", "demand"), count * padded),
        **dict.fromkeys(("C", "Ct", "mean"), count * padded * padded),
        "ft": count * problem.features * padded,
        "t_square": count * problem.columns,
        "t_constant": count,
    }
    sizes = {**wholes, **{name: (entries + 1) // 2 for name, entries in halves.items()}}
    memory = torch.empty(sum(sizes.values()), dtype=torch.float64, device=device)
    at = memory.data_ptr()
    for name, size in sizes.items():
        setattr(problem, name, at)
        at += 8 * size
    return memory


def workspace_size(rows: int, padded: int) -> int:
    """Doubles that one pair's solve works in: ``Workspace::size`` of workspace.cuh."""
    entries, atoms, qp_memory = rows + padded, 32, 32 * 32 + 32 // 2
    return rows * padded * (8 + atoms) + 2 * entries * atoms + 6 * entries + atoms * atoms + qp_memory + 1

"""What the operators in :mod:`tfgw.ot.op` do with tensors on a GPU.

Nothing is copied to the host. Input is checked by the kernels themselves; whether it was valid, they tell through one
word of host memory, which is read while the GPU is already solving.
"""

import threading
import warnings
from collections.abc import Callable
from ctypes import Structure
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.cuda.compile import launch as launch_on_gpu
from tfgw.ot.cuda.compile import load_cupy
from tfgw.ot.cuda.layout import Gradients, Problem, pointer, prepared_memory, size_class, workspace_size

LARGEST_SCRATCH = 2 << 30
"""Bytes of working memory that a solve takes at most, if its largest graph can do with them."""

Launch = Callable[..., None]


class Input(NamedTuple):
    """The tensors of a problem, in the order of the operators' arguments."""

    x: Tensor
    batch: Tensor | None
    batch_size: int
    node_weights: Tensor | None
    edge_index: Tensor | None
    edge_weight: Tensor | None
    structure: Tensor | None
    template_structure: Tensor | None
    template_features: Tensor
    template_weights: Tensor
    alpha: Tensor
    cost: Tensor | None = None
    start: Tensor | None = None


class Prepared(NamedTuple):
    """A problem that the kernels have indexed and checked, and everything that must live as long as it."""

    problem: Structure
    columns: int
    keep: tuple[object, ...]


def reason_not_to(given: Input, n_starts: int = 1) -> str | None:
    """Why the kernels cannot solve a problem, or ``None`` if they can."""
    load_cupy()
    if n_starts > 1:
        return "its kernels know a single start (n_starts=1)"
    nodes = given.template_weights.shape[1]
    columns = size_class(nodes)
    if columns is None:
        return f"templates have {nodes} nodes, more than 128"
    if torch.cuda.get_device_capability(given.x.device) < (8, 0):
        return "the GPU is older than compute capability 8.0"
    free = torch.cuda.get_device_properties(given.x.device).total_memory // 2
    if 8 * workspace_size(given.x.shape[0], columns) > free:
        return f"a batch of {given.x.shape[0]} nodes may hold a graph too large for its memory"
    return None


def warn_once(reason: str) -> None:
    """Say why the CPU solves instead, the first time that each reason comes up."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()


def prepare(given: Input, weight_tolerance: float, flag: Tensor, launch: Launch = launch_on_gpu) -> Prepared:
    """Index and check the problem; ``flag`` becomes 1 if it is invalid."""
    doubles = {
        "x": given.x,
        "weights": given.node_weights,
        "edge_weight": given.edge_weight,
        "dense": given.structure,
        "cost": given.cost,
        "template_structure": given.template_structure,
        "template_x": given.template_features,
        "template_weights": given.template_weights,
        "alpha": given.alpha,
        "start": given.start,
    }
    tensors = {name: None if t is None else t.detach().to(torch.float64).contiguous() for name, t in doubles.items()}
    tensors["batch"] = None if given.batch is None else given.batch.contiguous()
    tensors["edge_index"] = None if given.edge_index is None else given.edge_index.contiguous()
    count, nodes = given.template_weights.shape
    columns = size_class(nodes)
    assert columns is not None
    problem = Problem(
        graphs=given.batch_size,
        nodes=given.x.shape[0],
        features=given.x.shape[1],
        edges=0 if given.edge_index is None else given.edge_index.shape[1],
        templates=count,
        columns=nodes,
        padded=columns,
        weight_tolerance=weight_tolerance,
        invalid=flag.data_ptr(),
        **{name: pointer(t) for name, t in tensors.items()},
    )
    if given.edge_index is not None:  # without edges too, there is a structure
        problem.edge_index = given.edge_index.data_ptr() or flag.data_ptr()
    memory = prepared_memory(problem, given.x.device)
    launch("tfgw_index", columns, 1, problem)
    launch("tfgw_prepare", columns, given.batch_size + count, problem)
    return Prepared(problem, columns, (tensors, memory, flag))


def solve(
    ready: Prepared,
    out: dict[str, Tensor | None],
    *,
    max_iter: int,
    tol: float,
    processors: int,
    launch: Launch = launch_on_gpu,
) -> None:
    """Solve all pairs; ``out`` holds the results' tensors, zeroed, by name."""
    problem, columns = ready.problem, ready.columns
    pairs = problem.graphs * problem.templates
    blocks = min(pairs, 32 * processors)
    typical = workspace_size(-(-4 * problem.nodes // problem.graphs), columns)
    size = max(workspace_size(problem.nodes, columns), min(LARGEST_SCRATCH // 8, blocks * typical))
    distance = out["distance"]
    assert distance is not None
    scratch = torch.empty(size, dtype=torch.float64, device=distance.device)
    problem.scratch, problem.scratch_size = scratch.data_ptr(), size
    problem.max_iter, problem.tol = max_iter, tol
    for name, tensor in out.items():
        setattr(problem, name, pointer(tensor))
    launch("tfgw_solve", columns, blocks, problem)


def backward(
    ready: Prepared,
    solved: dict[str, Tensor],
    grads: dict[str, Tensor | None],
    launch: Launch = launch_on_gpu,
) -> None:
    """Gradients of ``sum(grad * distance)`` into the tensors of ``grads`` that are not ``None``, by name."""
    problem, columns = ready.problem, ready.columns
    nodes, count, m = problem.nodes, problem.templates, problem.columns
    device = solved["plan"].device
    shares = max(1, min(nodes // 32, 128))
    share_size = m * m + m * problem.features + m + 3
    structured = torch.empty(
        nodes * count * m if grads["template_structure"] is not None else 0, dtype=torch.float64, device=device
    )
    sums = torch.empty(shares * count * share_size, dtype=torch.float64, device=device)
    gradients = Gradients(
        structured=structured.data_ptr(),
        shares=sums.data_ptr(),
        share_count=shares,
        **{name: pointer(t) for name, t in solved.items()},
        **{name: pointer(t) for name, t in grads.items()},
    )
    launch("tfgw_backward_nodes", columns, nodes, problem, gradients)
    if grads["edge_weight"] is not None and problem.edges:
        launch("tfgw_backward_edges", columns, -(-problem.edges // 128), problem, gradients)
    launch("tfgw_backward_shares", columns, shares * count, problem, gradients)
    launch("tfgw_backward_total", columns, count, problem, gradients)


class _Flag(threading.local):
    """One word of host memory that the kernels of a device can write, per thread."""

    def __init__(self) -> None:
        self.word = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        self.checked = torch.cuda.Event()


@cache
def _flag(device: torch.device) -> _Flag:
    return _Flag()


def solve_checked(
    given: Input, weight_tolerance: float, out: dict[str, Tensor | None], *, max_iter: int, tol: float
) -> bool:
    """Solve on the current stream; false if the input is invalid. While a graph is captured, nobody looks."""
    with torch.cuda.device(given.x.device):
        flag = _flag(given.x.device)
        flag.word.zero_()
        ready = prepare(given, weight_tolerance, flag.word)
        capturing = torch.cuda.is_current_stream_capturing()
        if not capturing:
            flag.checked.record()
        processors = torch.cuda.get_device_properties(given.x.device).multi_processor_count
        solve(ready, out, max_iter=max_iter, tol=tol, processors=processors)
        if capturing:
            return True
        flag.checked.synchronize()
        return int(flag.word) == 0


def backward_unchecked(
    given: Input, weight_tolerance: float, solved: dict[str, Tensor], grads: dict[str, Tensor | None]
) -> None:
    """Gradients of a problem that was solved, hence valid."""
    with torch.cuda.device(given.x.device):
        backward(prepare(given, weight_tolerance, _flag(given.x.device).word), solved, grads)

"""What the operators in :mod:`tfgw.ot.op` do with tensors on a GPU.

Nothing is copied to the host. Input is checked by the kernels themselves; whether it was valid, they tell through one
word of host memory, which is read while the GPU is already solving. The host prepares each launch while the GPU is
busy with the one before.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.cuda.gpu import Gpu
from tfgw.ot.cuda.layout import (
    GRADIENT_TILE,
    GRADIENTS,
    LARGEST_SHARED,
    PROBLEM_HEAD,
    PROBLEM_TAIL,
    QUEUE,
    QUEUE_SPARE,
    prepared_addresses,
    prepared_offsets,
    shared_size,
    size_class,
    workspace_size,
)
from tfgw.ot.cuda.solved import Solved
from tfgw.ot.starts import UNIFORM

LARGEST_SCRATCH = 2 << 30
"""Bytes of working memory that a solve takes at most, if its largest graph can do with them."""


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

    @property
    def differentiable(self) -> tuple[Tensor | None, ...]:
        """What has gradients, in the order of the kernels' struct and of the operators' arguments."""
        return (*self[:1], *self[3:4], *self[5:11])


class Solution(NamedTuple):
    """What a solve leaves on the device."""

    distance: Tensor
    rest: Solved
    """All other results."""
    prepared: Tensor
    """The problem as prepared, for :func:`backward`."""


class Problem(NamedTuple):
    """A problem as the kernels take it, before its solve."""

    columns: int
    """Its size class."""
    head: bytes
    """The struct's first three parts: counts, input, prepared memory."""
    spare: int
    """Where kernels may report invalid input if nobody looks."""
    prepared: Tensor
    """Memory that the kernels `index` and `prepare` fill, and all others read."""
    inputs: list[Tensor | None]
    """What the head points to besides."""

    def struct(
        self,
        invalid: int,
        weight_tolerance: float,
        *,
        scratch: tuple[int, int, int] = (0, 0, 0),
        max_iter: int = 0,
        tol: float = 0.0,
        results: Sequence[int] = (0,) * 9,
    ) -> bytes:
        """The kernels' struct; ``results`` are addresses, ``scratch`` is one, with its doubles and the bytes of
        shared memory besides."""
        return self.head + PROBLEM_TAIL(invalid, *scratch, max_iter, tol, weight_tolerance, *results)


def reason_not_to(gpu: Gpu, given: Input, n_starts: int = 1, start_kinds: int = UNIFORM) -> str | None:
    """Why the kernels cannot solve a problem, or ``None`` if they can."""
    if n_starts > 1 or not (start_kinds & UNIFORM or given.start is not None):
        return "its kernels know a single start (n_starts=1), hh̄ᵀ or a given plan"
    columns = given.template_weights.shape[1]
    padded = size_class(columns)
    if padded is None:
        return f"templates have {columns} nodes, more than 128"
    if gpu.capability < (8, 0):
        return "the GPU is older than compute capability 8.0"
    if 8 * workspace_size(given.x.shape[0], padded) > gpu.memory // 2:
        return f"a batch of {given.x.shape[0]} nodes may hold a graph too large for its memory"
    return None


def warn_once(reason: str) -> None:
    """Say why the CPU solves instead, the first time that each reason comes up."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()


def describe(given: Input, prepared: Tensor | None = None) -> Problem:
    """The problem for the kernels; ``prepared`` is that of an earlier call, or new."""
    x, batch, graphs, weights, edge_index, edge_weight, dense, *templates, alpha, cost, start = given
    (count, nodes), edges = given.template_weights.shape, 0 if edge_index is None else edge_index.shape[1]
    columns = size_class(nodes)
    assert columns is not None
    counts = (graphs, *x.shape, edges, count, nodes)
    offsets = prepared_offsets(*counts, columns)
    if prepared is None:
        prepared = x.new_empty(offsets[-1], dtype=torch.uint8)
    inputs = as_read(batch, x, weights, edge_index, edge_weight, dense, cost, *templates, alpha, start)
    pointers = addresses(inputs)
    if edge_index is not None and not edges:
        pointers[3] = prepared.data_ptr()  # not null: without edges too, there is a structure
    memory = prepared_addresses(offsets, prepared.data_ptr(), columns)
    head = PROBLEM_HEAD(*counts, *pointers, *memory)
    return Problem(columns, head, memory[QUEUE] + QUEUE_SPARE, prepared, inputs)


def as_read(*tensors: Tensor | None) -> list[Tensor | None]:
    """The same values as the kernels read them; the tensors themselves where they can."""
    return [t if t is None or (t.is_contiguous() and t.dtype in _READ) else _converted(t) for t in tensors]


_READ = (torch.float64, torch.int64)


def _converted(tensor: Tensor) -> Tensor:
    if tensor.requires_grad:
        tensor = tensor.detach()
    return (tensor if tensor.dtype in _READ else tensor.to(torch.float64)).contiguous()


def addresses(tensors: Sequence[Tensor | None]) -> list[int]:
    """Of their first entries; 0, the null pointer, for ``None``."""
    return [0 if t is None else t.data_ptr() for t in tensors]


def solve(
    gpu: Gpu, given: Input, *, weight_tolerance: float, max_iter: int, tol: float, with_plans: bool
) -> Solution | None:
    """Solve all pairs on the current stream; ``None`` if the input is invalid. While a graph is captured, nobody can
    look whether it is."""
    with gpu.selected():
        problem = describe(given)
        capturing = gpu.capturing()
        invalid = problem.spare if capturing else gpu.check.begin()
        _prepare(gpu, problem, given, problem.struct(invalid, weight_tolerance))
        if not capturing:
            gpu.check.end(gpu.stream)
        solution = _allocate(given, problem.prepared, with_plans)
        columns, nodes, graphs = problem.columns, given.x.shape[0], given.batch_size
        pairs = graphs * given.template_weights.shape[0]
        blocks = min(pairs, 32 * gpu.processors)
        typical = workspace_size(-(-4 * nodes // graphs), columns)
        size = max(workspace_size(nodes, columns), min(LARGEST_SCRATCH // 8, blocks * typical))
        scratch = given.x.new_empty(size, dtype=torch.float64)
        # Where all pairs are solved at once, the largest graphs decide when the last one ends: they get more.
        larger = 2 if pairs <= 8 * gpu.processors else 1
        shared = min(larger * LARGEST_SHARED // 2, shared_size(-(-3 * larger * nodes // (2 * graphs)), columns))
        struct = problem.struct(
            invalid,
            weight_tolerance,
            scratch=(scratch.data_ptr(), size, shared),
            max_iter=max_iter,
            tol=tol,
            results=(solution.distance.data_ptr(), *solution.rest.addresses()),
        )
        gpu.launch("tfgw_solve", columns, blocks, struct, shared=shared)
        return solution if capturing or gpu.check.passed() else None


def backward(
    gpu: Gpu,
    given: Input,
    grad: Tensor,
    solved: Sequence[int],
    needs: Sequence[bool],
    *,
    weight_tolerance: float,
    prepared: Tensor | None = None,
) -> list[Tensor | None]:
    """Gradients of ``sum(grad * distance)`` with respect to what is differentiable and needed, in float64.

    Args:
        gpu: The device.
        given: The problem, which was solved before, hence is valid.
        grad: Gradient of the distances.
        solved: Addresses of both costs, plan, and the potentials of graphs and templates.
        needs: Which gradients there are to be.
        weight_tolerance: As for the solve.
        prepared: The prepared problem, as the solve returned it; ``None`` prepares it again.
    """
    with gpu.selected():
        problem = describe(given, prepared)
        struct = problem.struct(problem.spare, weight_tolerance)
        if prepared is None:
            _prepare(gpu, problem, given, struct)
        grads = [
            torch.empty_like(tensor, dtype=torch.float64, memory_format=torch.contiguous_format)
            if need and tensor is not None
            else None
            for need, tensor in zip(needs, given.differentiable, strict=True)
        ]
        grad_x, grad_weights, grad_edge_weight, grad_structure, grad_template_structure, *_ = grads
        (nodes, features), (templates, m) = given.x.shape, given.template_weights.shape
        # C T, where the structure of the templates needs it.
        entries = 0 if grad_template_structure is None else nodes * templates * m
        structured = given.x.new_empty(entries, dtype=torch.float64)
        read = as_read(grad)
        gradients = GRADIENTS.bytes(*addresses(read), *solved, *addresses(grads), structured.data_ptr())
        columns, structs = problem.columns, (struct, gradients)
        if any(gradient is not None for gradient in (grad_x, grad_weights, grad_structure, grad_template_structure)):
            gpu.launch("tfgw_backward_nodes", columns, nodes, *structs)
        if grad_edge_weight is not None and grad_edge_weight.numel():
            gpu.launch("tfgw_backward_edges", columns, -(-grad_edge_weight.numel() // 128), *structs)
        if any(gradient is not None for gradient in grads[4:]):
            tiles = -(-(m + features) // GRADIENT_TILE)
            gpu.launch("tfgw_backward_templates", columns, templates * m * tiles, *structs)
        return grads


def _prepare(gpu: Gpu, problem: Problem, given: Input, struct: bytes) -> None:
    gpu.launch("tfgw_index", problem.columns, 1, struct)
    gpu.launch("tfgw_prepare", problem.columns, given.batch_size + given.template_weights.shape[0], struct)


def _allocate(given: Input, prepared: Tensor, with_plans: bool) -> Solution:
    x, graphs, (count, columns) = given.x, given.batch_size, given.template_weights.shape
    distance = x.new_empty((graphs, count), dtype=torch.float64)
    return Solution(distance, Solved.room(x, graphs, count, columns, with_plans), prepared)

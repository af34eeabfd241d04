"""What the operators in :mod:`tfgw.ot.op` do with tensors on a GPU.

Nothing is copied to the host. Input is checked by the kernels themselves; whether it was valid, they tell through one
word of host memory, which is read while the GPU is already solving. The host prepares each launch while the GPU is
busy with the one before.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.ot.cuda.gpu import Gpu
from tfgw.ot.cuda.layout import (
    ALPHA,
    GRAD_ALPHA,
    GRAD_STRUCTURE,
    GRADIENT_TILE,
    GRADIENTS,
    PROBLEM_HEAD,
    PROBLEM_TAIL,
    QUEUE,
    QUEUE_SPARE,
    SHARED_ENTRIES,
    STRUCTURE,
    prepared_addresses,
    prepared_offsets,
    size_class,
    solve_shape,
    workspace_size,
)
from tfgw.ot.cuda.solved import Solved
from tfgw.ot.problem import SharedEntries, expand_alpha
from tfgw.ot.starts import UNIFORM

LARGEST_SCRATCH = 2 << 30
"""Bytes of working memory that a solve takes at most, if a single graph of all its nodes can do with them."""


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
    shared: SharedEntries | None = None
    """If given, then ``template_structure`` is its entries, and ``alpha`` may be a single one."""

    def unshared(self) -> tuple[Any, ...]:
        """The operators' arguments: the structure of the templates itself, and one α for each."""
        if self.shared is None:
            return self[:11]
        entries, features, weights, alpha = self[7:11]
        structure = self.shared._replace(entries=entries).dense()  # type: ignore[arg-type]
        return (*self[:7], structure, features, weights, expand_alpha(alpha, len(weights)))

    def folded(self, grads: list[Tensor], needs: Sequence[bool]) -> list[Tensor]:
        """Gradients of what is differentiable, from those of what is not shared."""
        *others, structure, features, weights, alpha = grads
        if self.shared is not None and needs[4]:
            structure = self.shared.folded(structure)
        if self.shared is not None and needs[7]:
            alpha = alpha.sum_to_size(self.alpha.shape) if self.alpha.dim() < 2 else alpha.sum().view_as(self.alpha)
        return [*others, structure, features, weights, alpha]

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
    shared: bytes
    """The struct of the kernel `expand`; empty where nothing is shared."""

    def struct(
        self,
        invalid: int,
        weight_tolerance: float,
        *,
        scratch: tuple[int, int, int, int] = (0, 0, 0, 0),
        max_iter: int = 0,
        tol: float = 0.0,
        results: Sequence[int] = (0,) * 9,
    ) -> bytes:
        """The kernels' struct; ``results`` are addresses, ``scratch`` is one, with its doubles, the bytes of
        shared memory besides, and the nodes of a small graph."""
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
    x, batch, graphs, weights, edge_index, edge_weight, dense, C, F, h, alpha, cost, start, shared = given
    (count, nodes), edges = h.shape, 0 if edge_index is None else edge_index.shape[1]
    columns = size_class(nodes)
    assert columns is not None
    counts = (graphs, *x.shape, edges, count, nodes)
    offsets = prepared_offsets(*counts, columns)
    size, of_structure = offsets[-1], 8 * count * nodes * nodes
    if prepared is None:
        expanded = 0 if shared is None else of_structure + 8 * count
        prepared = x.new_empty(size + expanded, dtype=torch.uint8)
    first = prepared.data_ptr()
    inputs = as_read(batch, x, weights, edge_index, edge_weight, dense, cost, C, F, h, alpha, start)
    pointers, expansion = addresses(inputs), b""
    if edge_index is not None and not edges:
        pointers[3] = first  # not null: without edges too, there is a structure
    if shared is not None:  # behind what is prepared
        unshared = (first + size, first + size + of_structure)
        expansion = _shared_entries(given, shared, pointers[STRUCTURE], pointers[ALPHA], *unshared)
        pointers[STRUCTURE], pointers[ALPHA] = unshared
    memory = prepared_addresses(offsets, first, columns)
    head = PROBLEM_HEAD(*counts, *pointers, 0 if dense is None else dense.numel(), *memory)
    return Problem(columns, head, memory[QUEUE] + QUEUE_SPARE, prepared, inputs, expansion)


def _shared_entries(given: Input, shared: SharedEntries, *pointers: int) -> bytes:
    """The struct of `expand` and `fold`, for the addresses of entries, α, structures, and one α for each of these."""
    (count, entries), nodes = shared.entries.shape, given.template_weights.shape[1]
    step = int(given.alpha.numel() > 1)
    return SHARED_ENTRIES.bytes(count, nodes * nodes, entries, step, shared.places.data_ptr(), *pointers)


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
        columns, nodes, graphs = problem.columns, given.x.shape[0], given.batch_size
        edges = 0 if given.edge_index is None else given.edge_index.shape[1]
        shape = solve_shape(gpu.shared, graphs, nodes, edges, given.template_weights.shape[1], columns)
        capturing = gpu.capturing()
        invalid = problem.spare if capturing else gpu.check.begin()
        shared = (shape.shared, shape.small_graph)
        _prepare(gpu, problem, given, problem.struct(invalid, weight_tolerance, scratch=(0, 0, *shared)))
        if not capturing:
            gpu.check.end(gpu.stream)
        solution = _allocate(given, problem.prepared, with_plans)
        pairs = graphs * given.template_weights.shape[0]
        blocks = min(pairs, shape.per_processor * gpu.processors)
        typical = workspace_size(-(-6 * nodes // graphs), columns)
        size = max(workspace_size(nodes, columns), min(LARGEST_SCRATCH // 8, blocks * typical))
        scratch = given.x.new_empty(size, dtype=torch.float64)
        struct = problem.struct(
            invalid,
            weight_tolerance,
            scratch=(scratch.data_ptr(), size, *shared),
            max_iter=max_iter,
            tol=tol,
            results=(solution.distance.data_ptr(), *solution.rest.addresses()),
        )
        gpu.launch("tfgw_solve", columns, blocks, struct, shared=shape.shared)
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
        # Behind each other: C T, where the structure of the templates needs it, and gradients yet to be folded.
        structured = 0 if grad_template_structure is None else nodes * templates * m
        unfolded = 0 if given.shared is None else templates * (m * m + 1)
        scratch = given.x.new_empty(structured + unfolded, dtype=torch.float64)
        read = as_read(grad)
        memory = scratch.data_ptr()
        of_grads, fold = addresses(grads), b""
        of_structure, of_alpha = of_grads[GRAD_STRUCTURE], of_grads[GRAD_ALPHA]
        if given.shared is not None and (of_structure or of_alpha):
            structures = memory + 8 * structured
            alphas = structures + 8 * templates * m * m
            fold = _shared_entries(given, given.shared, of_structure, of_alpha, structures, alphas)
            of_grads[GRAD_STRUCTURE], of_grads[GRAD_ALPHA] = of_structure and structures, of_alpha and alphas
        gradients = GRADIENTS.bytes(*addresses(read), *solved, *of_grads, memory)
        columns, structs = problem.columns, (struct, gradients)
        if any(gradient is not None for gradient in (grad_x, grad_weights, grad_structure, grad_template_structure)):
            gpu.launch("tfgw_backward_nodes", columns, nodes, *structs)
        if grad_edge_weight is not None and grad_edge_weight.numel():
            gpu.launch("tfgw_backward_edges", columns, -(-grad_edge_weight.numel() // 128), *structs)
        if any(gradient is not None for gradient in grads[4:]):
            tiles = -(-(m + features) // GRADIENT_TILE)
            gpu.launch("tfgw_backward_templates", columns, templates * m * tiles, *structs)
        if fold:
            gpu.launch("tfgw_fold", columns, templates, fold)
        return grads


def _prepare(gpu: Gpu, problem: Problem, given: Input, struct: bytes) -> None:
    gpu.launch("tfgw_index", problem.columns, 1, struct)
    if problem.shared:
        gpu.launch("tfgw_expand", problem.columns, given.template_weights.shape[0], problem.shared)
    gpu.launch("tfgw_prepare", problem.columns, given.batch_size + given.template_weights.shape[0], struct)


def _allocate(given: Input, prepared: Tensor, with_plans: bool) -> Solution:
    x, graphs, (count, columns) = given.x, given.batch_size, given.template_weights.shape
    distance = x.new_empty((graphs, count), dtype=torch.float64)
    return Solution(distance, Solved.room(x, graphs, count, columns, with_plans), prepared)

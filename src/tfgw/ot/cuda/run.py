"""What the operators in :mod:`tfgw.ot.op` do with tensors on a GPU.

Nothing is copied to the host. Input is checked by the kernels themselves; whether it was valid, they tell through one
word of host memory, which is read while the GPU is already solving. The host prepares each launch while the GPU is
busy with the one before.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from tfgw.ot.cuda.gpu import Gpu
from tfgw.ot.cuda.solved import Solution, Wanted
from tfgw.ot.problem import SharedEntries, expand_alpha
from tfgw.ot.starts import UNIFORM


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
    padded_nodes: bool = False
    """Whether nodes at the end, with ``batch_size`` as their graph, are there for nothing: no result is theirs, and
    their gradients are 0."""

    def unshared(self) -> tuple[Any, ...]:
        """The operators' arguments: the structure of the templates itself, and one α for each."""
        if self.shared is None:
            return self[:11]
        entries, features, weights, alpha = self[7:11]
        structure = self.shared._replace(entries=entries).dense()  # type: ignore[arg-type]
        return (*self[:7], structure, features, weights, expand_alpha(alpha, len(weights)))

    def unpadded(self) -> "Input":
        """The same without padding; counting it waits for the GPU."""
        if not self.padded_nodes or self.batch is None:
            return self
        nodes = int((self.batch != self.batch_size).sum())
        edges = None if self.edge_index is None else self.edge_index[0] < nodes
        return self._replace(
            x=self.x[:nodes],
            batch=self.batch[:nodes],
            node_weights=None if self.node_weights is None else self.node_weights[:nodes],
            edge_index=None if self.edge_index is None else self.edge_index[:, edges],
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            padded_nodes=False,
        )

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


def reason_not_to(gpu: Gpu, given: Input, n_starts: int = 1, start_kinds: int = UNIFORM) -> str | None:
    """Why the kernels cannot solve a problem, or ``None`` if they can."""
    if n_starts > 1 or not (start_kinds & UNIFORM or given.start is not None):
        return "its kernels know a single start (n_starts=1), hh̄ᵀ or a given plan"
    shape = (given.batch_size, given.x.shape[0], *given.template_weights.shape)
    return gpu.host.reason_not_to(*shape, given.start is not None)


def warn_once(reason: str) -> None:
    """Say why the CPU solves instead, the first time that each reason comes up."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()


def solve(
    gpu: Gpu, given: Input, *, weight_tolerance: float, max_iter: int, tol: float, wanted: Wanted
) -> Solution | None:
    """Solve all pairs on the current stream; ``None`` if the input is invalid. While a graph is captured, nobody can
    look whether it is."""
    found = gpu.call(gpu.host.solve, given, weight_tolerance, max_iter, tol, wanted)
    return None if found is None else Solution._make(found)


def backward(
    gpu: Gpu,
    given: Input,
    grad: Tensor,
    solved: tuple[Tensor | None, ...],
    needs: Sequence[bool],
    *,
    weight_tolerance: float,
    prepared: Tensor | None = None,
) -> list[Tensor | None]:
    """Gradients of ``sum(grad * distance)`` with respect to what is differentiable, in the precision of that; ``None``
    where they are not needed.

    Args:
        gpu: The device.
        given: The problem, which was solved before, hence is valid.
        grad: Gradient of the distances.
        solved: ``pairs`` and ``plans`` of the solve; nothing, if they are behind ``prepared``; or both costs, plan, and
            the potentials of graphs and templates.
        needs: Which gradients there are to be.
        weight_tolerance: As for the solve.
        prepared: The prepared problem, as the solve returned it; ``None`` prepares it again.
    """
    return gpu.call(gpu.host.backward, given, grad, solved, needs, weight_tolerance, prepared)

"""Solve problems on a GPU in CUDA C++, with the same algorithm and results as the C++ core.

forward, backward ─▶ gpu: a device ─▶ ot/cuda/host (C++): describes a problem to the kernels, and launches them
                                   ├▶ kernels: loaded by name and size class ─▶ machine_code: where it comes from
                                   │                       compile: CUDA C++ to machine code, by units ◀┘
                                   └▶ driver: the CUDA driver
results: memory layout of the results
precompile: machine code as files of a package

Nothing is copied to the host. The kernels check the input and report through one word of host memory, which is read
while the GPU is already solving. The host prepares each launch while the GPU executes the previous one.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfgw.ot.backends.cuda.gpu import Gpu, gpu_at
from tfgw.ot.backends.cuda.results import HostSolution, Saved, unpacked
from tfgw.ot.problem import DIAGNOSIS, PLANS, RESULTS, Problem, ProblemSize, Solution, SolvedPairs


def gpu_of(device: torch.device) -> Gpu:
    """Return the GPU of a PyTorch device."""
    return gpu_at(device.index)


def unsupported_reason(problem: Problem) -> str | None:
    """Return why the kernels cannot solve a problem, or ``None`` if they can."""
    return unsupported_size(problem.x.device, problem.size)


def unsupported_size(device: torch.device, size: ProblemSize) -> str | None:
    """Return why the kernels cannot solve problems of this size on a device, or ``None`` if they can."""
    reason: str | None = gpu_of(device).host.unsupported_reason(size)
    return reason


def forward(problem: Problem, wanted: int) -> Solution | None:
    """Solve all pairs on the current stream, in float64; ``None`` if the input is invalid.

    A diagnosis has only the spreads; :func:`tfgw.ot.backends.cpu.assess` finds the rest.

    While a CUDA graph is captured, the validity of the input cannot be checked.
    """
    device = gpu_of(problem.x.device)
    with device.as_current():
        found = device.host.solve(problem, problem.weight_tolerance, wanted)
    if found is None:
        return None
    found = HostSolution._make(found)
    results = diagnosis = None
    if wanted & RESULTS:
        assert found.pairs is not None
        columns = problem.template_weights.shape[1]
        results = unpacked(found.pairs, found.plans if wanted & PLANS else None, problem.x.shape[0], columns)
    if wanted & DIAGNOSIS:
        diagnosis = (torch.zeros_like(found.distances) if found.spreads is None else found.spreads,)
    saved = Saved(prepared=found.prepared, pairs=found.pairs, plans=found.plans)
    return Solution(found.distances, results, diagnosis, saved=saved)


def backward(
    problem: Problem, grad: Tensor, needs: Sequence[bool], *, state: Any, saved: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """Return the gradients of ``sum(grad * distances)``, in the order of ``problem.differentiable``.

    The plan is held fixed (envelope theorem). ``state`` and ``saved`` are those of the solution.
    """
    device = gpu_of(problem.x.device)
    with device.as_current():
        return device.host.backward(problem, grad, needs, **Saved._make(saved)._asdict())


def backward_of_solved(
    problem: Problem, grad: Tensor, needs: Sequence[bool], solved: SolvedPairs
) -> list[Tensor | None]:
    """Return the same gradients as :func:`backward`, for given results."""
    device = gpu_of(problem.x.device)
    with device.as_current():
        return device.host.backward_of_solved(problem, grad, needs, solved, problem.weight_tolerance)

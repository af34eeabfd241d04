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
from tfgw.ot.backends.cuda.results import Wanted, unpacked
from tfgw.ot.problem import DIAGNOSIS, PLANS, RESULTS, Problem, ProblemSize, Solution


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
        found = device.host.solve(problem, problem.weight_tolerance, Wanted.of(wanted))
    if found is None:
        return None
    distances, pairs, plans, prepared, spreads = found
    results = None
    if wanted & RESULTS:
        columns = problem.template_weights.shape[1]
        results = unpacked(pairs, plans if wanted & PLANS else None, problem.x.shape[0], columns)
    diagnosis = (torch.zeros_like(distances) if spreads is None else spreads,) if wanted & DIAGNOSIS else None
    return Solution(distances, results, diagnosis, saved=(prepared, pairs, plans))


def backward(
    problem: Problem, grad: Tensor, needs: Sequence[bool], *, state: Any, saved: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """Return the gradients of ``sum(grad * distances)``, in the order of ``problem.differentiable``.

    The plan is held fixed (envelope theorem). ``saved`` is that of the solution, or ``Results.for_backward``.
    """
    prepared, solved = None, saved
    if len(saved) == 3:
        prepared, *others = saved
        solved = () if others[0] is None else tuple(others)
    device = gpu_of(problem.x.device)
    with device.as_current():
        return device.host.backward(problem, grad, solved, needs, problem.weight_tolerance, prepared)

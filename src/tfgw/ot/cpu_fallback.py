"""The CPU in place of another backend: for problems that it cannot solve, and for the messages of input errors."""

import warnings
from typing import NoReturn

from tfgw.ot import backends
from tfgw.ot.problem import Problem


def on_cpu(problem: Problem) -> Problem:
    """Return the problem on the CPU, as the operators require it, without gradients."""
    return problem.dense().map_tensors(lambda tensor: tensor.detach().cpu())


def raise_input_error(problem: Problem) -> NoReturn:
    """Raise the CPU's error for a problem that the GPU found invalid; the GPU does not report the reason."""
    backends.cpu.forward(on_cpu(problem.unpadded()), 0)
    raise AssertionError("the GPU's checks found an error that the CPU's did not")


def warn_once(reason: str) -> None:
    """Warn once per reason that the CPU solves instead."""
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"tfgw: solving on the CPU: {reason}", stacklevel=2)


_warned: set[str] = set()

"""Backends: one module per kind of device. Backends depend only on the problem types of the package.

Each implements ``unsupported_reason(problem)``, ``forward(problem, wanted)``, ``backward(problem, grad, needs, …)`` for
its own solutions, and ``backward_of_solved(problem, grad, needs, solved)`` for given results.
"""

from types import ModuleType

from torch import Tensor

from tfgw.ot.backends import cpu, cuda


def backend_of(tensor: Tensor) -> ModuleType:
    """Return the backend for the device of a tensor."""
    return cuda if tensor.is_cuda else cpu

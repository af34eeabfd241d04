"""Backends: one module per kind of device. Backends depend only on the problem types of the package.

Each implements ``forward(problem, wanted)``, ``backward(problem, grad, solution…)`` and
``unsupported_reason(problem)``.
"""

from types import ModuleType

from torch import Tensor

from tfgw.ot.backends import cpu, cuda


def backend_of(tensor: Tensor) -> ModuleType:
    """Return the backend for the device of a tensor."""
    return cuda if tensor.is_cuda else cpu

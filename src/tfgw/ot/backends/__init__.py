"""Backends: one module per kind of device, which knows the problem and nothing else of the package.

Each has ``forward(problem, wanted)``, ``backward(problem, grad, solution…)`` and ``unsupported_reason(problem)``.
"""

from types import ModuleType

from torch import Tensor

from tfgw.ot.backends import cpu, cuda


def backend_of(tensor: Tensor) -> ModuleType:
    """The backend for the device of a tensor."""
    return cuda if tensor.is_cuda else cpu

"""Limits of the kernels, which the host code in C++ defines (ot/cuda/host/layout.hpp)."""

from tfgw.ot import _core  # the C++ extension

SIZE_CLASSES: tuple[int, ...] = _core.GPU_SIZE_CLASSES
"""Padded numbers of template nodes for which kernels are compiled, ascending. The CPU solves larger templates."""
LARGEST_FOR_STARTS = _core.GPU_LARGEST_FOR_STARTS
"""The largest size class with kernels for several starts."""
LARGEST_FOR_SMALL_GRAPHS = _core.GPU_LARGEST_FOR_SMALL_GRAPHS
"""The largest size class with kernels for many small graphs."""
OLDEST = (_core.GPU_OLDEST_GENERATION, 0)
"""The lowest compute capability that the kernels support."""
RESERVED_BYTES = _core.GPU_RESERVED_BYTES
"""Shared memory that each block reserves."""

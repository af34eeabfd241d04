"""Load kernels on a device, by name and size class."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Timer

import torch

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.compile import Architecture
from tfgw.ot.backends.cuda.kernel_limits import RESERVED_BYTES, SIZE_CLASSES
from tfgw.ot.backends.cuda.machine_code import compile_ahead, find, machine_code, origin
from tfgw.ot.backends.cuda.units import LAYERS, Unit, unit_of, units_of

PATIENCE = 2.0
"""Seconds after which a message announces the compilation. Loading existing machine code takes less time."""


@cache
def kernel(device: int, name: str, columns: int) -> int:
    """Load a kernel of a size class on a device and return the driver's handle."""
    with driver.current_context(device):
        found = driver.function(_module(device, unit_of(name), columns), name)
        if name.startswith(("tfgw_start", "tfgw_solve")):
            driver.allow_shared_memory(found, shared_memory(device) - RESERVED_BYTES)
        return found


@cache
def layer_kernel(device: int, name: str) -> int:
    """Load a kernel for the layers of networks on a device and return the driver's handle."""
    with driver.current_context(device):
        return driver.function(_layers_module(device), name)


def load_layers(device: int) -> None:
    """Load all kernels for the layers of networks."""
    torch.empty(1, device=torch.device("cuda", device))  # initialises CUDA
    for name in LAYERS.kernels:
        layer_kernel(device, name)


def layers_origin(device: int) -> str:
    """Return the current source of the machine code for the layers of networks; see :func:`machine_code.origin`."""
    return origin([LAYERS], SIZE_CLASSES[0], architecture_of(device))


@cache
def _layers_module(device: int) -> int:
    return driver.load_module(find(LAYERS, SIZE_CLASSES[0], architecture_of(device)))


def load_forward(template_nodes: int, device: int, *, n_starts: int = 1) -> None:
    """Load all kernels that a solve with templates of this size may launch, before the first solve."""
    columns = next((columns for columns in SIZE_CLASSES if template_nodes <= columns), None)
    if columns is None:
        return
    groups = (False, True) if n_starts > 1 else (False,)
    for several in groups:
        compile_ahead(columns, architecture_of(device), several=several)
    torch.empty(1, device=torch.device("cuda", device))  # initialises CUDA
    for unit in units_of(columns):
        if unit.forward and unit.several in groups:
            for name in unit.kernels:
                kernel(device, name, columns)


@cache
def _module(device: int, unit: Unit, columns: int) -> int:
    with _announced(columns):
        return driver.load_module(machine_code(unit, columns, architecture_of(device)))


@contextmanager
def _announced(columns: int) -> Iterator[None]:
    notice = Timer(PATIENCE, _announce, (columns,))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


@cache
def _announce(columns: int) -> None:
    text = "tfgw: compiling the GPU kernels for templates of up to %d nodes, once"
    logging.getLogger("tfgw").warning(text, columns)


@cache
def architecture_of(device: int) -> Architecture:
    """Return the compute capability of a device."""
    major, minor = torch.cuda.get_device_capability(device)
    return Architecture(10 * major + minor)


@cache
def shared_memory(device: int) -> int:
    """Return the shared memory per multiprocessor in bytes, including the part that each block reserves."""
    return driver.shared_memory_of_block(device) + RESERVED_BYTES

"""Check whether a GPU is ready: the setup, the kernels of every size class, and their agreement with the CPU core.

>>> setup = find_setup()
>>> for checked in check_kernels():     # one size class at a time; compiles missing kernels
...     checked.agrees
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.compile import MISSING, compiler_version
from tfgw.ot.backends.cuda.kernel_limits import OLDEST, RESERVED_BYTES, SIZE_CLASSES
from tfgw.ot.backends.cuda.kernels import architecture_of, shared_memory
from tfgw.ot.backends.cuda.machine_code import compile_ahead, origin
from tfgw.ot.backends.cuda.units import LAYERS, units_of
from tfgw.ot.inputs import GraphBatch, Templates
from tfgw.ot.solve import fgw
from tfgw.ot.starts import FRESH_STARTS

VALUE_TOLERANCE = 1e-10
"""Maximum relative difference of a distance."""
GRADIENT_TOLERANCE = 1e-8
"""Maximum difference of a gradient, relative to its largest entry."""
SIZES = (5, 11, 23, 41, 90, 150)
"""Numbers of nodes of the test graphs. Together, they use all kinds of kernels of a size class."""
STARTS = FRESH_STARTS + 1
"""Number of starts: one of them depends on the others."""


class Device(NamedTuple):
    """A GPU."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    memory: int  # bytes
    shared_memory: int  # bytes, maximum per block
    multiprocessors: int


@dataclass(frozen=True)
class Setup:
    """The software and devices that solving on a GPU requires.

    Attributes:
        torch: Version of PyTorch.
        torch_cuda: CUDA version that PyTorch was built for; ``None`` for a CPU build.
        driver: The latest CUDA version that the driver supports; ``None`` without a driver.
        cupy: Version of CuPy, which compiles the kernels; ``None`` if it is not installed.
        nvrtc: Version of the compiler that CuPy found; ``None`` if it found none.
        devices: The GPUs that PyTorch sees.
        missing: One sentence that explains how to make GPUs usable; ``None`` if nothing is missing.
    """

    torch: str
    torch_cuda: str | None
    driver: str | None
    cupy: str | None
    nvrtc: str | None
    devices: tuple[Device, ...] = ()
    missing: str | None = None


def find_setup() -> Setup:
    """Look for everything that solving on a GPU needs."""
    found = Setup(torch.__version__, torch.version.cuda, _driver_version(), _cupy_version(), _compiler_version())
    if torch.cuda.is_available():
        found = replace(found, devices=tuple(map(_device, range(torch.cuda.device_count()))))
    return replace(found, missing=_missing(found))


def _missing(found: Setup) -> str | None:
    if found.torch_cuda is None:
        return f"PyTorch {found.torch} is built without CUDA: install a CUDA build, see https://pytorch.org/get-started"
    if found.driver is None:
        return "no NVIDIA driver was found: install it, or run this on a machine with an NVIDIA GPU"
    if not found.devices:
        return f"PyTorch finds no GPU that its CUDA {found.torch_cuda} can use: see what nvidia-smi says"
    first = found.devices[0]
    if first.capability < OLDEST:
        found_version, oldest = (".".join(map(str, version)) for version in (first.capability, OLDEST))
        return (
            f"{first.name} has compute capability {found_version}, and the kernels need {oldest}: "
            "tfgw solves on the CPU"
        )
    architecture = architecture_of(first.ordinal)
    groups = [(units_of(each, several=several), each) for each in SIZE_CLASSES for several in _units_exist(each)]
    groups.append(([LAYERS], SIZE_CLASSES[0]))
    needs_compiler = any(origin(units, columns, architecture) == "compiler" for units, columns in groups)
    return MISSING if needs_compiler and found.nvrtc is None else None


def _driver_version() -> str | None:
    try:
        return ".".join(map(str, driver.version()))
    except (OSError, RuntimeError):
        return None


def _cupy_version() -> str | None:
    try:
        import cupy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return str(cupy.__version__)


def _compiler_version() -> str | None:
    try:
        return compiler_version()
    except Exception:  # CuPy raises its own errors if it finds no library
        return None


def _device(index: int) -> Device:
    properties = torch.cuda.get_device_properties(index)
    return Device(
        ordinal=index,
        name=properties.name,
        capability=(properties.major, properties.minor),
        memory=properties.total_memory,
        shared_memory=shared_memory(index) - RESERVED_BYTES,
        multiprocessors=properties.multi_processor_count,
    )


class CheckedKernels(NamedTuple):
    """Comparison of the kernels of a size class with the CPU core."""

    columns: int
    """Maximum number of template nodes."""
    origin: str
    """Where the machine code came from: ``"package"``, ``"cache"`` or ``"compiler"``."""
    seconds: float
    """Time until the first solve finished."""
    value_difference: float
    """Largest relative difference of a distance from the CPU's."""
    gradient_difference: float
    """Largest difference of a gradient from the CPU's, relative to its largest entry."""
    several: bool = False
    """Whether these are the kernels of several starts, or those of one start."""

    @property
    def agrees(self) -> bool:
        """Whether both differences are within the tolerance."""
        return self.value_difference <= VALUE_TOLERANCE and self.gradient_difference <= GRADIENT_TOLERANCE


def check_kernels(columns: Sequence[int] = SIZE_CLASSES, *, device: str = "cuda") -> Iterator[CheckedKernels]:
    """Load or compile the kernels of each size class, one at a time, and compare them with the CPU core.

    The kernels of several starts, which only the smaller size classes have, come after the others of their size class.

    Args:
        columns: Size classes, each given by its maximum number of template nodes.
        device: PyTorch's name of the GPU.
    """
    index = torch.device(device).index or 0
    for each in columns:
        example = _example(each)
        for several in _units_exist(each):
            starts = STARTS if several else 1
            expected = _solved(example, "cpu", starts)
            where = origin(units_of(each, several=several), each, architecture_of(index))
            started = time.perf_counter()
            compile_ahead(each, architecture_of(index), several=several)
            found = _solved(example, device, starts)
            seconds = time.perf_counter() - started
            value = ((found[0] - expected[0]).abs() / expected[0].abs()).max()
            grads = [float((f - e).abs().max() / e.abs().max()) for f, e in zip(found[1:], expected[1:], strict=True)]
            yield CheckedKernels(each, where, seconds, float(value), max(grads), several)


def _units_exist(columns: int) -> list[bool]:
    """Whether there are units of one start and of several, in this order."""
    return [several for several in (False, True) if units_of(columns, several=several)]


class _Example(NamedTuple):
    x: Tensor
    batch: Tensor
    edge_index: Tensor
    features: Tensor
    structure: Tensor
    alpha: Tensor


def _example(columns: int) -> _Example:
    """Random graphs and templates without ties."""
    generator = torch.Generator().manual_seed(columns)
    sizes, count, nodes, features = torch.tensor(SIZES), 3, columns - 3, 4
    batch = torch.repeat_interleave(sizes)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    same_graph = batch[:, None] == batch
    linked = (torch.rand(len(batch), len(batch), generator=generator) < 3 / sizes[batch]).triu(1) & same_graph
    linked |= same_graph.triu(1) & ~same_graph.triu(2)  # a path, so that graphs are connected
    structure = numbers(count, nodes, nodes).abs()
    return _Example(
        x=numbers(len(batch), features),
        batch=batch,
        edge_index=(linked | linked.T).nonzero().T,
        features=numbers(count, nodes, features),
        structure=(structure + structure.mT) / 2,
        alpha=torch.tensor(0.4, dtype=torch.float64),
    )


def _solved(example: _Example, device: str, starts: int) -> list[Tensor]:
    """Return the distances, solved on a device, and the gradients of their weighted sum."""
    on_device = _Example._make(tensor.to(device) for tensor in example)
    leaves = [on_device.x, on_device.features, on_device.structure, on_device.alpha]
    x, features, structure, alpha = (leaf.detach().requires_grad_() for leaf in leaves)
    graphs = GraphBatch(x, batch=on_device.batch, edge_index=on_device.edge_index)
    distances = fgw(graphs, Templates(features, structure=structure), alpha, n_starts=starts, plans=None).distances
    weights = torch.arange(1, 1 + distances.numel(), dtype=torch.float64, device=device).view_as(distances)
    gradients = torch.autograd.grad((distances * weights).sum(), [x, features, structure, alpha])
    return [tensor.detach().cpu() for tensor in (distances, *gradients)]

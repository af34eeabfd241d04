"""The CUDA kernels on a CPU: compiled by g++, each thread a fibre (emulated_warp.hpp)."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from torch import Tensor

from tfgw.ot import _core, backends
from tfgw.ot.backends import cuda
from tfgw.ot.backends.cuda.compile import SOURCES
from tfgw.ot.backends.cuda.driver import NAMES
from tfgw.ot.backends.cuda.gpu import Gpu
from tfgw.ot.backends.cuda.results import HostSolution, Saved, unpacked
from tfgw.ot.problem import DIFFERENTIABLE as FIELDS
from tfgw.ot.problem import PLANS, Problem, SolvedPairs

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


@cache
def compiled(columns: int) -> ctypes.CDLL:
    assert COMPILER is not None
    file = Path(tempfile.mkdtemp(prefix="tfgw-emulation-")) / f"kernels_{columns}.so"
    command = [COMPILER, "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{SOURCES}", f"-I{HERE}"]
    subprocess.run([*command, f"-DTFGW_COLUMNS={columns}", "-o", file, HERE / "emulation.cpp"], check=True)
    return ctypes.CDLL(str(file))


class EmulatedDriver:
    """The functions of the CUDA driver that a solve calls. A launch runs its kernel at once.

    Errors that are put into ``errors`` are answered, one after the other, by the calls of that name.
    """

    def __init__(self) -> None:
        self.launched: list[str] = []
        self.launches: list[Launch] = []
        self.beyond: list[str] = []
        """Kernels that wrote beyond their shared memory."""
        self.calls: list[str] = []
        self.errors: dict[str, list[int]] = {}
        self.capturing = False
        self._kernels: list[tuple[str, Callable[..., Any]]] = [("none", print)]  # by handle, which is not 0
        self._words: list[ctypes.c_int] = []
        signatures = {
            "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, POINTER(c_void_p), c_void_p),
            "cuEventCreate": (POINTER(c_void_p), c_uint),
            "cuEventRecord": (c_void_p, c_void_p),
            "cuEventSynchronize": (c_void_p,),
            "cuStreamIsCapturing": (c_void_p, POINTER(c_int)),
            "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
            "cuGetErrorName": (c_int, POINTER(c_char_p)),
        }
        assert set(signatures) == set(NAMES)
        self._functions = {
            name: CFUNCTYPE(c_int, *types)(partial(self._answer, name)) for name, types in signatures.items()
        }
        self.addresses = {name: ctypes.cast(f, c_void_p).value for name, f in self._functions.items()}

    def kernel(self, name: str, columns: int) -> int:
        self._kernels.append((name, self.function(name, columns)))
        return len(self._kernels) - 1

    def function(self, name: str, columns: int) -> Callable[..., Any]:
        """What a kernel does, for its blocks, their bytes of shared memory and its structs."""
        return getattr(compiled(columns), f"launch_{name}")

    def _answer(self, name: str, *arguments: Any) -> int:
        self.calls.append(name)
        if self.errors.get(name):
            return self.errors[name].pop(0)
        getattr(self, name, lambda *_: None)(*arguments)
        return 0

    def cuLaunchKernel(self, handle: int, *arguments: Any) -> None:
        (blocks, _, _, threads, _, _, shared), structs = arguments[:7], arguments[8]
        name, function = self._kernels[handle]
        self.launched.append(name)
        self.launches.append(Launch(name, blocks, threads, shared))
        count = 2 if name.startswith(("tfgw_backward", "tfgw_index", "tfgw_starts")) else 1
        if function(blocks, shared, *(c_void_p(structs[i]) for i in range(count))):
            self.beyond.append(name)

    def cuEventCreate(self, event: Any, flags: int) -> None:
        event[0] = 1

    def cuStreamIsCapturing(self, stream: int, status: Any) -> None:
        status[0] = int(self.capturing)

    def cuMemHostAlloc(self, address: Any, size: int, flags: int) -> None:
        assert size == 4
        self._words.append(c_int(-1))
        address[0] = ctypes.addressof(self._words[-1])

    def cuGetErrorName(self, error: int, name: Any) -> None:
        name[0] = b"CUDA_ERROR_INVALID_VALUE"


class Launch(NamedTuple):
    kernel: str
    blocks: int
    threads: int
    shared: int


class EmulatedGpu(Gpu):
    """Solves tensors on the CPU, and remembers the names of the kernels that it ran."""

    def __init__(
        self,
        processors: int = 1,
        shared: int = 228 << 10,
        memory: int = 1 << 40,
        generation: int = 9,
        driver: EmulatedDriver | None = None,
    ) -> None:
        self.index = 0
        self.driver = driver or EmulatedDriver()
        self.host = _core.Gpu(
            driver=self.driver.addresses,
            processors=processors,
            shared=shared,
            memory=memory,
            generation=generation,
            kernel=self.driver.kernel,
            stream=lambda: 0,
        )

    @property
    def launched(self) -> list[str]:
        return self.driver.launched

    def as_current(self) -> AbstractContextManager[Any]:
        return nullcontext()


def emulated_for_eager_calls(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    """Eager calls go to the one that is returned, as those with tensors on a GPU go there."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    emulated = EmulatedGpu()
    monkeypatch.setattr(cuda, "gpu_of", lambda device: emulated)
    monkeypatch.setattr(backends, "backend_of", lambda tensor: cuda)
    return emulated


RESULTS = ("distance", "structure_cost", "feature_cost", "gap", "iterations", "status", "plan", "row_potential",
           "col_potential")  # fmt: skip
DIFFERENTIABLE = (
    "x",
    "weights",
    "edge_weight",
    "dense",
    "template_structure",
    "template_x",
    "template_weights",
    "alpha",
)
"""The kernels' names of what may have a gradient."""
assert len(DIFFERENTIABLE) == len(FIELDS)


def solve(problem: Problem, *, gpu: EmulatedGpu | None = None) -> tuple[dict[str, Tensor], Saved] | None:
    """Every result of a solve by name, and what its backward pass reads; ``None`` where the input was found invalid."""
    gpu = gpu or EmulatedGpu()
    found = gpu.host.solve(problem, 1e-6, PLANS)
    assert not gpu.driver.beyond
    if found is None:
        return None
    host = HostSolution._make(found)
    others = unpacked(host.pairs, host.plans, problem.x.shape[0], problem.template_weights.shape[1])
    saved = Saved(prepared=host.prepared, pairs=host.pairs, plans=host.plans)
    return dict(zip(RESULTS, (host.distances, *others), strict=True)), saved


def differentiable(problem: Problem) -> dict[str, Tensor]:
    """What a problem has gradients for, by the kernels' names."""
    named = zip(DIFFERENTIABLE, problem.differentiable, strict=True)
    return {name: tensor for name, tensor in named if tensor is not None}


def backward(
    problem: Problem, solved: Saved | dict[str, Tensor], grad: Tensor, needed: set[str] | None = None
) -> dict[str, Tensor]:
    """Gradients with respect to what is needed, by default everything that the problem has, by name.

    ``solved`` is what the solve has saved, or its results: then the problem is prepared again.
    """
    needs, host = [needed is None or name in needed for name in DIFFERENTIABLE], EmulatedGpu().host
    if isinstance(solved, Saved):
        grads = host.backward(problem, grad, needs, **solved._asdict())
    else:
        pairs = SolvedPairs(
            structure_costs=solved["structure_cost"],
            feature_costs=solved["feature_cost"],
            plans=solved["plan"],
            graph_potentials=solved["row_potential"],
            template_potentials=solved["col_potential"],
        )
        grads = host.backward_of_solved(problem, grad, needs, pairs, 1e-6)
    return {name: g for name, g in zip(DIFFERENTIABLE, grads, strict=True) if g is not None}

"""The CUDA kernels on a CPU: compiled by g++, each thread a fibre (emulated_warp.hpp)."""

import ctypes
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
from torch import Tensor

from tfgw.ot.cuda import run
from tfgw.ot.cuda.compile import SOURCES
from tfgw.ot.cuda.gpu import Gpu
from tfgw.ot.cuda.run import Input

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


@cache
def compiled(columns: int) -> ctypes.CDLL:
    assert COMPILER is not None
    file = Path(tempfile.mkdtemp(prefix="tfgw-emulation-")) / f"kernels_{columns}.so"
    command = [COMPILER, "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{SOURCES}", f"-I{HERE}"]
    subprocess.run([*command, f"-DTFGW_COLUMNS={columns}", "-o", file, HERE / "emulation.cpp"], check=True)
    return ctypes.CDLL(str(file))


class EmulatedCheck:
    def __init__(self) -> None:
        self.word = np.zeros(1, dtype=np.int32)

    def begin(self) -> int:
        self.word[0] = 0
        return self.word.ctypes.data

    def end(self, stream: int) -> None: ...

    def passed(self) -> bool:
        return int(self.word[0]) == 0


class EmulatedGpu(Gpu):
    """Solves tensors on the CPU, and remembers the names of the kernels that it ran."""

    stream = 0

    def __init__(self, processors: int = 1, shared: int = 228 << 10) -> None:
        self.index, self.processors, self.memory, self.capability = 0, processors, 1 << 40, (9, 0)
        self.shared = shared
        self.check = EmulatedCheck()
        self.launched: list[str] = []

    def launch(self, name: str, columns: int, blocks: int, *structs: bytes, shared: int = 0) -> None:
        self.launched.append(name)
        getattr(compiled(columns), f"launch_{name}")(blocks, *structs)

    def capturing(self) -> bool:
        return False

    def selected(self) -> nullcontext[None]:
        return nullcontext()


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


def solve(
    given: Input, *, max_iter: int = 1000, tol: float = 1e-9, gpu: EmulatedGpu | None = None
) -> tuple[dict[str, Tensor], Tensor] | None:
    """Every result of a solve by name, and the prepared problem; ``None`` where the input was found invalid."""
    gpu = gpu or EmulatedGpu()
    found = run.solve(gpu, given, weight_tolerance=1e-6, max_iter=max_iter, tol=tol, with_plans=True)
    if found is None:
        return None
    return dict(zip(RESULTS, (found.distance, *found.rest.tensors(with_plans=True)), strict=True)), found.prepared


def differentiable(given: Input) -> dict[str, Tensor]:
    """What a problem has gradients for, by the kernels' names."""
    named = zip(DIFFERENTIABLE, given.differentiable, strict=True)
    return {name: tensor for name, tensor in named if tensor is not None}


def backward(
    given: Input, solved: dict[str, Tensor], grad: Tensor, prepared: Tensor | None, needed: set[str] | None = None
) -> dict[str, Tensor]:
    """Gradients with respect to what is needed, by default everything that the problem has, by name."""
    values = [solved[name] for name in ("structure_cost", "feature_cost", "plan", "row_potential", "col_potential")]
    needs = [needed is None or name in needed for name in DIFFERENTIABLE]
    grads = run.backward(
        EmulatedGpu(), given, grad, run.addresses(values), needs, weight_tolerance=1e-6, prepared=prepared
    )
    return {name: g for name, g in zip(DIFFERENTIABLE, grads, strict=True) if g is not None}

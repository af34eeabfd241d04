"""The CUDA kernels on a CPU: compiled by g++, each thread a fibre (emulated_warp.hpp)."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from tfgw.ot.cuda import run
from tfgw.ot.cuda.compile import SOURCES
from tfgw.ot.cuda.run import Input

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


@cache
def library(columns: int) -> ctypes.CDLL:
    assert COMPILER is not None
    file = Path(tempfile.mkdtemp(prefix="tfgw-emulation-")) / f"kernels_{columns}.so"
    command = [COMPILER, "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", f"-I{SOURCES}", f"-I{HERE}"]
    subprocess.run([*command, f"-DTFGW_COLUMNS={columns}", "-o", file, HERE / "emulation.cpp"], check=True)
    return ctypes.CDLL(str(file))


def launch(name: str, columns: int, blocks: int, *structs: ctypes.Structure) -> None:
    getattr(library(columns), f"launch_{name}")(blocks, *(ctypes.byref(s) for s in structs))


def solve(given: Input, *, max_iter: int = 1000, tol: float = 1e-9, processors: int = 1) -> dict[str, Tensor]:
    """Every result of a solve by name, and whether the input was found ``invalid``."""
    flag = torch.zeros(1, dtype=torch.int32)
    ready = run.prepare(given, 1e-6, flag, launch)
    (count, columns), nodes = given.template_weights.shape, len(given.x)
    pairs = (given.batch_size, count)
    out = {
        name: torch.zeros(pairs, dtype=torch.float64) for name in ("distance", "structure_cost", "feature_cost", "gap")
    }
    out |= {name: torch.zeros(pairs, dtype=torch.int32) for name in ("iterations", "status")}
    out |= {
        "plan": torch.zeros((nodes, count, columns), dtype=torch.float64),
        "row_potential": torch.zeros((nodes, count), dtype=torch.float64),
        "col_potential": torch.zeros((*pairs, columns), dtype=torch.float64),
    }
    run.solve(ready, dict(out), max_iter=max_iter, tol=tol, processors=processors, launch=launch)
    return {**out, "invalid": flag}


def differentiable(given: Input) -> dict[str, Tensor | None]:
    """What a problem has gradients for, by the kernels' names."""
    return {
        "x": given.x,
        "weights": given.node_weights,
        "edge_weight": given.edge_weight,
        "dense": given.structure,
        "template_structure": given.template_structure,
        "template_x": given.template_features,
        "template_weights": given.template_weights,
        "alpha": given.alpha,
    }


def backward(given: Input, solved: dict[str, Tensor], grad: Tensor) -> dict[str, Tensor]:
    """Gradients with respect to everything that the problem has, by name."""
    ready = run.prepare(given, 1e-6, torch.zeros(1, dtype=torch.int32), launch)
    grads = {name: None if t is None else torch.zeros_like(t) for name, t in differentiable(given).items()}
    names = ("structure_cost", "feature_cost", "plan", "row_potential", "col_potential")
    run.backward(ready, {"grad": grad, **{name: solved[name] for name in names}}, grads, launch)
    return {name: g for name, g in grads.items() if g is not None}

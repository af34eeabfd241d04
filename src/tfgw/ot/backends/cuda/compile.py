"""Compile CUDA C++ to machine code with NVRTC, which CuPy provides. No GPU is needed."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from tfgw.ot.backends.cuda.units import Unit

SOURCES = Path(__file__).parents[2] / "cuda"
MISSING = (
    "this GPU needs CuPy, which compiles the kernels and is not installed: pip install 'tfgw[cuda]', or move the "
    "tensors to the CPU"
)


class Architecture(int):
    """Compute capability of a GPU times ten: 90 is 9.0."""

    def __str__(self) -> str:
        return f"sm_{int(self)}"


def compile_unit(unit: Unit, columns: int, architecture: Architecture) -> bytes:
    """Compile a unit for a size class to machine code.

    For GPUs that are newer than the compiler, the result is PTX, which the driver translates. Thread-safe.
    """
    nvrtc = load_nvrtc()
    known = max((known for known in nvrtc.getSupportedArchs() if known <= architecture), default=0)
    exact = known == architecture
    # The last two are defaults of CuPy.
    options = (
        "--std=c++17",
        f"-I{SOURCES}",
        f"-DTFGW_COLUMNS={columns}",
        f"-arch={'sm' if exact else 'compute'}_{known}",
        "-ftz=true",
        "--device-as-default-execution-space",
    )
    program = nvrtc.createProgram((SOURCES / f"{unit.name}.cu").read_text(), f"{unit.name}.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            raise RuntimeError(f"{unit.name}.cu: {nvrtc.getProgramLog(program)}") from None
        code: bytes = nvrtc.getCUBIN(program) if exact else nvrtc.getPTX(program)
        return code
    finally:
        nvrtc.destroyProgram(program)


@cache
def source_digest() -> str:
    """Return a digest of the kernels' sources, 16 hexadecimal digits."""
    files = sorted(SOURCES.glob("*.cu*"))
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()[:16]


@cache
def compiler_version() -> str:
    """Return the version of NVRTC, such as 13.0."""
    return ".".join(map(str, load_nvrtc().getVersion()))


@cache
def load_nvrtc() -> Any:
    """Return CuPy's interface to NVRTC, or raise ``ImportError`` with installation instructions."""
    try:
        from cupy.cuda import nvrtc  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError(MISSING) from None
    return nvrtc

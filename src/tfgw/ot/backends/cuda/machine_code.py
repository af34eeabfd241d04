"""Get the machine code of a unit from the files of the package, the disk cache, or the compiler.

machine_code ─▶ compile_ahead: all units of a size class at once, each in a thread ─▶ shipped | cached | compile_unit

The units of several starts are separate, because most users never need them.
"""

import lzma
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.compile import SOURCES, Architecture, compile_unit, compiler_version, source_digest
from tfgw.ot.backends.cuda.units import Unit, units_of

SHIPPED = SOURCES / "compiled"
"""Files of a released package (precompile.py). A source checkout does not have them."""
SHIPPED_VERSION = (13, 0)
"""CUDA version of the compiler of these files. Earlier drivers cannot load them."""


def machine_code(unit: Unit, columns: int, architecture: Architecture) -> bytes:
    """Return machine code for the driver. Waits only for this unit, while other units of its size class continue."""
    return compile_ahead(columns, architecture, several=unit.several)[unit].result()


def compile_ahead(columns: int, architecture: Architecture, *, several: bool = False) -> dict[Unit, "Future[bytes]"]:
    """Start to find or compile the units of a size class, unless this has started already, and do not wait.

    Args:
        columns: Maximum number of template nodes.
        architecture: Compute capability of the GPU.
        several: Whether to compile the units that only several starts need, or all others.
    """
    with _lock:
        key = columns, architecture, several
        if key not in _begun or any(_failed(future) for future in _begun[key].values()):
            units = units_of(columns, several=several)
            _begun[key] = {unit: _threads().submit(find, unit, columns, architecture) for unit in units}
        return _begun[key]


_begun: dict[tuple[int, Architecture, bool], dict[Unit, "Future[bytes]"]] = {}
_lock = Lock()


def _failed(future: "Future[bytes]") -> bool:
    return future.done() and future.exception() is not None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="tfgw-compile")


def find(unit: Unit, columns: int, architecture: Architecture) -> bytes:
    """Find or compile the machine code of one unit."""
    code = shipped(unit, columns, architecture) or _cached(unit, columns, architecture)
    return code or _kept(compile_unit(unit, columns, architecture), cache_file(unit, columns, architecture))


def origin(units: Sequence[Unit], columns: int, architecture: Architecture) -> str:
    """Return the current source of the machine code of all units: ``"package"``, ``"cache"`` or ``"compiler"``."""
    if all(shipped(unit, columns, architecture) for unit in units):
        return "package"
    return "cache" if all(_cached(unit, columns, architecture) for unit in units) else "compiler"


def shipped_name(unit: Unit, columns: int, architecture: Architecture) -> str:
    """Return the name of a file of the package. Files compiled from different sources are ignored."""
    return f"{unit.name}-{columns}-{architecture}-{source_digest()}.cubin.xz"


def shipped(unit: Unit, columns: int, architecture: Architecture) -> bytes | None:
    """Return the package's machine code for this architecture or an earlier one of its generation."""
    if driver.version() < SHIPPED_VERSION:
        return None
    for minor in range(architecture % 10, -1, -1):
        earlier = Architecture(architecture // 10 * 10 + minor)
        with suppress(FileNotFoundError):
            return lzma.decompress((SHIPPED / shipped_name(unit, columns, earlier)).read_bytes())
    return None


def cache_folder() -> Path:
    """Return the folder ``tfgw`` in CuPy's kernel cache: ``$CUPY_CACHE_DIR``, or ``~/.cupy/kernel_cache``."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache") / "tfgw"


def cache_file(unit: Unit, columns: int, architecture: Architecture) -> Path:
    """Return the cache file for these sources, size class, architecture and compiler version."""
    name = f"{unit.name}-{columns}-{architecture}-nvrtc{compiler_version()}-{source_digest()}.cubin"
    return cache_folder() / name


def _cached(unit: Unit, columns: int, architecture: Architecture) -> bytes | None:
    try:
        return cache_file(unit, columns, architecture).read_bytes() or None
    except OSError:
        return None


def _kept(code: bytes, path: Path) -> bytes:
    """Write a file atomically. If the disk is not writable, the next process compiles again."""
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(8)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(code)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return code

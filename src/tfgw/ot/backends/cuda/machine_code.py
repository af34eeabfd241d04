"""Where the machine code of a unit comes from: files of the package, the disk cache, or the compiler.

machine_code ─▶ compile_ahead: all units of a size class at once, each in a thread ─▶ shipped | cached | compile_unit
"""

import lzma
import os
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from tfgw.ot.backends.cuda import driver
from tfgw.ot.backends.cuda.compile import SOURCES, Architecture, compile_unit, compiler_version, source_digest
from tfgw.ot.backends.cuda.units import Unit, units_of

SHIPPED = SOURCES / "compiled"
"""Files of a released package (precompile.py), which a source checkout does not have."""
SHIPPED_VERSION = (13, 0)
"""CUDA version that they are compiled with. Earlier drivers cannot load them."""


def machine_code(unit: Unit, columns: int, architecture: Architecture) -> bytes:
    """What the driver loads. Waits for this unit only; the others of its size class go on meanwhile."""
    return compile_ahead(columns, architecture)[unit].result()


def compile_ahead(columns: int, architecture: Architecture) -> dict[Unit, "Future[bytes]"]:
    """Begin to find or compile all units of a size class, if that has not begun, and do not wait."""
    with _lock:
        key = columns, architecture
        if key not in _begun or any(_failed(future) for future in _begun[key].values()):
            units = units_of(columns)
            _begun[key] = {unit: _threads().submit(_find, unit, columns, architecture) for unit in units}
        return _begun[key]


_begun: dict[tuple[int, Architecture], dict[Unit, "Future[bytes]"]] = {}
_lock = Lock()


def _failed(future: "Future[bytes]") -> bool:
    return future.done() and future.exception() is not None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="tfgw-compile")


def _find(unit: Unit, columns: int, architecture: Architecture) -> bytes:
    code = shipped(unit, columns, architecture) or _cached(unit, columns, architecture)
    return code or _kept(compile_unit(unit, columns, architecture), cache_file(unit, columns, architecture))


def origin(columns: int, architecture: Architecture) -> str:
    """Where the machine code of a size class would come from now: the package, the disk cache or the compiler."""
    units = units_of(columns)
    if all(shipped(unit, columns, architecture) for unit in units):
        return "package"
    return "cache" if all(_cached(unit, columns, architecture) for unit in units) else "compiler"


def shipped_name(unit: Unit, columns: int, architecture: Architecture) -> str:
    """Name of a file of the package. Files of other sources are ignored."""
    return f"{unit.name}-{columns}-{architecture}-{source_digest()}.cubin.xz"


def shipped(unit: Unit, columns: int, architecture: Architecture) -> bytes | None:
    """Machine code that came with the package, for this architecture or an earlier one of its generation."""
    if driver.version() < SHIPPED_VERSION:
        return None
    for minor in range(architecture % 10, -1, -1):
        earlier = Architecture(architecture // 10 * 10 + minor)
        with suppress(FileNotFoundError):
            return lzma.decompress((SHIPPED / shipped_name(unit, columns, earlier)).read_bytes())
    return None


def cache_folder() -> Path:
    """``tfgw`` in the folder in which CuPy keeps kernels: ``$CUPY_CACHE_DIR``, or ``~/.cupy/kernel_cache``."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache") / "tfgw"


def cache_file(unit: Unit, columns: int, architecture: Architecture) -> Path:
    """Where compiled machine code is kept: by sources, size class, architecture and version of the compiler."""
    name = f"{unit.name}-{columns}-{architecture}-nvrtc{compiler_version()}-{source_digest()}.cubin"
    return cache_folder() / name


def _cached(unit: Unit, columns: int, architecture: Architecture) -> bytes | None:
    try:
        return cache_file(unit, columns, architecture).read_bytes() or None
    except OSError:
        return None


def _kept(code: bytes, path: Path) -> bytes:
    """Write a file whole or not at all. A disk that cannot be written to costs the next process a compilation."""
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(8)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(code)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return code

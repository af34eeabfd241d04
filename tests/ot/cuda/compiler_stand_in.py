"""A stand-in for NVRTC, which counts what it is asked for and takes as long as it is told to."""

import threading
import time
from pathlib import Path

import pytest

from tfgw.ot.backends.cuda import compile, driver, machine_code


class NVRTCError(RuntimeError):
    """As CuPy raises it."""


class Compiler:
    """CuPy's interface to NVRTC. The machine code of a program names the options that it was compiled with."""

    NVRTCError = NVRTCError

    def __init__(self, seconds: float = 0.0, version: tuple[int, int] = (13, 0)) -> None:
        self.seconds = seconds
        self.version = version
        self.compiled: list[str] = []
        """Files, in the order in which they were begun."""
        self.at_a_time = 0
        """Most programs that were compiled at a time."""
        self.broken: set[str] = set()
        """Files that do not compile."""
        self._programs: dict[int, tuple[str, tuple[str, ...]]] = {}
        self._running = 0
        self._lock = threading.Lock()

    def getVersion(self) -> tuple[int, int]:
        return self.version

    def getSupportedArchs(self) -> tuple[int, ...]:
        return (75, 80, 86, 89, 90, 100)

    def createProgram(self, source: str, name: str, headers: tuple[str, ...], names: tuple[str, ...]) -> int:
        assert "TFGW_KERNEL" in source
        with self._lock:
            self.compiled.append(name)
            self._programs[len(self.compiled)] = name, ()
            return len(self.compiled)

    def compileProgram(self, program: int, options: tuple[str, ...]) -> None:
        name, _ = self._programs[program]
        with self._lock:
            self._running += 1
            self.at_a_time = max(self.at_a_time, self._running)
        time.sleep(self.seconds)
        with self._lock:
            self._running -= 1
            self._programs[program] = name, options
        if name in self.broken:
            raise NVRTCError

    def getProgramLog(self, program: int) -> str:
        return "expected a ';'"

    def getCUBIN(self, program: int) -> bytes:
        return self._code("cubin", program)

    def getPTX(self, program: int) -> bytes:
        return self._code("ptx", program)

    def _code(self, kind: str, program: int) -> bytes:
        name, options = self._programs[program]
        chosen = [option for option in options if option.startswith(("-arch", "-DTFGW_COLUMNS"))]
        return " ".join([kind, name, *sorted(chosen)]).encode()

    def destroyProgram(self, program: int) -> None:
        del self._programs[program]

    @property
    def is_clean(self) -> bool:
        """Whether all programs were destroyed."""
        return not self._programs


def install(monkeypatch: pytest.MonkeyPatch, compiler: Compiler, folder: Path) -> Compiler:
    """Compile with a stand-in, as a new process would whose cache is in a folder."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    monkeypatch.setattr(compile, "load_nvrtc", lambda: compiler)
    compile.compiler_version.cache_clear()
    monkeypatch.setattr(machine_code, "_begun", {})
    monkeypatch.setattr(driver, "version", lambda: (13, 0))
    monkeypatch.setattr(machine_code, "SHIPPED", folder / "shipped")
    return compiler

"""The tests of the C++ core that need no Python run with the others; ``make sanitize`` has them under sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tfgw import ot

HERE = Path(__file__).parent
CORE = Path(ot.__file__).parent / "cpp"
COMPILER = shutil.which("g++")


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_core(tmp_path: Path) -> None:
    sources = [
        *CORE.glob("*.cpp"),
        *(HERE / name for name in ("random_problem.cpp", "checks.cpp", "test_core.cpp", "test_basis.cpp")),
    ]
    options = ["-std=c++17", "-O0", "-Wno-psabi", "-pthread", f"-I{CORE}", f"-I{CORE.parent / 'cuda'}", f"-I{HERE}"]
    program = tmp_path / "test_core"
    subprocess.run([str(COMPILER), *options, "-o", program, *sources], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

"""pytest in a fork of this process, which has imported the libraries but nothing of tfgw.

That takes a tenth of the time of a new interpreter.
"""

import importlib
import os
import signal
import sys
import time
from pathlib import Path

HOOK = Path(__file__).with_name("import_hook")
LIBRARIES = ("pytest", "hypothesis", "torch", "torch_geometric.data", "sklearn.svm", "scipy.optimize", "ot",
             "lightning_fabric", "networkx", "pandas")  # fmt: skip


def import_libraries() -> None:
    """Import what tests need, so that forks have it."""
    for name in LIBRARIES:
        importlib.import_module(name)


def run_pytest(arguments: list[str], *, output: Path, patience: float, environment: dict[str, str]) -> int | None:
    """Exit status of pytest in a fork; ``None`` if it did not end in time."""
    child = os.fork()
    if child == 0:
        _become_pytest(arguments, output, environment)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def first_failure(output: Path) -> str | None:
    """The first test that failed, as pytest names it."""
    lines = output.read_text(errors="replace").splitlines()
    return next((line[:200] for line in lines if line.startswith(("FAILED", "ERROR"))), None)


def _become_pytest(arguments: list[str], output: Path, environment: dict[str, str]) -> None:
    os.setsid()
    os.environ |= environment | {"PYTHONPATH": str(HOOK), "OMP_NUM_THREADS": "1"}
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    status = 70
    try:
        sys.path.insert(0, str(HOOK))
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")
        pytest = importlib.import_module("pytest")
        status = int(pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *arguments]))
    finally:
        os._exit(status)

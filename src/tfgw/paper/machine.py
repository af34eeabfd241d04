"""The machine and the software versions that a record names."""

import hashlib
import os
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import torch

from tfgw.ot import _core

UNCOMMITTED = "-dirty"
"""End of the name of a commit if there were uncommitted changes."""

PACKAGES = ("tfgw", "torch", "torch-geometric", "numpy", "scikit-learn")


@lru_cache
def machine(accelerator: str) -> dict[str, str | int | None]:
    """Processor with its vector instructions, number of cores, and the GPU if it is used."""
    uses_gpu = accelerator != "cpu" and torch.cuda.is_available()
    return {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name() if uses_gpu else None,
        "system": platform.system(),
    }


@lru_cache
def versions() -> dict[str, str]:
    """Versions of Python and of packages that results depend on; in a Git checkout, also the commit and its date.

    ``core`` is a hash of the compiled solver. It depends on the compiler, and shows if the build is not of the commit.
    """
    found = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    found["core"] = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:10]
    commit = _git("describe", "--always", f"--dirty={UNCOMMITTED}", "--abbrev=10")
    date = _git("show", "--no-patch", "--format=%cI", "HEAD")
    return found | {name: value for name, value in (("commit", commit), ("committed", date)) if value}


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

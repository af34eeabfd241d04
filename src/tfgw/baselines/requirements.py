"""Packages that only some baselines need, imported when they are used."""

import importlib
from types import ModuleType


def require(package: str) -> ModuleType:
    """The package, or one sentence on how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{package} is not installed; this baseline needs it: pip install 'tfgw[paper]'") from error

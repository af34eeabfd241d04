"""Optional packages of some baselines, imported on use."""

import importlib
from types import ModuleType


def require(package: str) -> ModuleType:
    """Import a package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{package} is not installed; this baseline needs it: pip install 'tfgw[paper]'") from error

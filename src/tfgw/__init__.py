"""Template based graph neural networks with optimal transport distances."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfgw.train import load_model

__all__ = ["__version__", "load_model"]

__version__ = _version("tfgw")


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the command line's help must not wait for PyTorch.
    if name == "load_model":
        from tfgw.train import load_model

        return load_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

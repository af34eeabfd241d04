"""Template based graph neural networks with optimal transport distances."""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfgw import baselines, datasets, estimators, explanations, nn, ot, paper, train
    from tfgw.explanations import explain
    from tfgw.train import load_model

__all__ = [
    "__version__",
    "baselines",
    "datasets",
    "estimators",
    "explain",
    "explanations",
    "load_model",
    "nn",
    "ot",
    "paper",
    "train",
]

__version__ = _version("tfgw")


_HOMES = {"explain": "tfgw.explanations", "load_model": "tfgw.train"}


def __getattr__(name: str) -> Any:
    # Import lazily, so that the help of the command line does not load PyTorch.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

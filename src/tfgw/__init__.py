"""Template based graph neural networks with optimal transport distances."""

from importlib.metadata import version as _version

__version__ = _version("tfgw")

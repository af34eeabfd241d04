"""How many nodes templates have where nobody says it."""

import warnings
from collections.abc import Iterable

from torch_geometric.data import Data

from tfgw.datasets import median_nodes

MAX_DEFAULT_NODES = 64
"""The time of a step grows with the nodes of the templates; docs/files.md has measurements. All of the paper's datasets
have smaller medians."""


def default_template_nodes(train: Iterable[Data]) -> int:
    """The median number of nodes of the training graphs, at most :data:`MAX_DEFAULT_NODES`, with a warning."""
    median = median_nodes(train)
    if median <= MAX_DEFAULT_NODES:
        return median
    warnings.warn(
        f"half of the training graphs have {median} nodes or more; templates have {MAX_DEFAULT_NODES} unless"
        " template_nodes (--template-nodes) says otherwise",
        stacklevel=2,
    )
    return MAX_DEFAULT_NODES

"""How many templates there are, and how many nodes they have, where nobody says it."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from torch_geometric.data import Data

from tfgw.datasets import median_nodes
from tfgw.train import recipes

MAX_DEFAULT_NODES = 64
"""The time of a step grows with the nodes of the templates. All of the paper's datasets have smaller medians."""

MAX_DEFAULT_TEMPLATES = 1_000
"""More than that are meant only if somebody says so: targets are probably values, or names of graphs."""


def number_of_templates(settings: Mapping[str, Any], num_classes: int) -> int:
    """The number of templates of a network that complete settings describe, if it is chosen or not too large."""
    found = recipes.num_templates(settings, num_classes)
    if settings.get("num_templates") is None and found > MAX_DEFAULT_TEMPLATES:
        raise ValueError(
            f"{num_classes:,} classes would have {found:,} templates; choose a number of templates, or a regression if"
            " targets are values"
        )
    return found


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

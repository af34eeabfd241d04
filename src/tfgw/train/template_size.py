"""Default number and size of templates."""

import warnings
from collections.abc import Mapping
from typing import Any

from tfgw.datasets import median_nodes
from tfgw.datasets.from_data import Graphs
from tfgw.train import recipes

MAX_DEFAULT_NODES = 64
"""Limit of the default size, because the time of a step grows with it. The paper's datasets have smaller medians."""

MAX_DEFAULT_TEMPLATES = 1_000
"""Limit of the default number. Beyond it, the targets are probably values or identifiers, not classes."""


def number_of_templates(settings: Mapping[str, Any], num_classes: int) -> int:
    """Return the number of templates that the settings describe; raise ``ValueError`` if a default is too large."""
    found = recipes.num_templates(settings, num_classes)
    if settings.get("num_templates") is None and found > MAX_DEFAULT_TEMPLATES:
        raise ValueError(
            f"{num_classes:,} classes would need {found:,} templates; set the number of templates, or use regression if"
            " the targets are values"
        )
    return found


def default_template_nodes(train: Graphs) -> int:
    """Return the median size of the training graphs, or :data:`MAX_DEFAULT_NODES` with a warning if it is larger."""
    median = median_nodes(train)
    if median <= MAX_DEFAULT_NODES:
        return median
    warnings.warn(
        f"the training graphs have a median of {median} nodes; templates have {MAX_DEFAULT_NODES} nodes; set"
        " template_nodes (--template-nodes) to change this",
        stacklevel=2,
    )
    return MAX_DEFAULT_NODES

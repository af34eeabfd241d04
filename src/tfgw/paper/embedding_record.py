"""Record of a trained TFGW model for the figures: distances of all graphs, and the templates."""

from typing import Any

import numpy as np
import torch

from tfgw.datasets import GraphDataset
from tfgw.estimators import TFGWClassifier
from tfgw.nn import TFGWModel
from tfgw.nn.ensemble import members_of

DIGITS = 5


def describe_embedding(model: TFGWClassifier, parts: dict[str, GraphDataset | None]) -> dict[str, Any]:
    """Return JSON data: distances and labels by part, and templates with their distances and predicted classes."""
    present = {name: part for name, part in parts.items() if part is not None}
    templates = model.templates_
    own = _template_distances(model)
    return {
        "distances": {name: _rounded(model.transform(list(part))) for name, part in present.items()},
        "labels": {name: part.y.tolist() for name, part in present.items() if part.y is not None},
        "template_structure": _rounded(templates.structure),
        "template_features": _rounded(templates.features),
        "template_weights": _rounded(templates.weights),
        "template_distances": _rounded(own),
        "template_classes": _predicted_classes(model, own),
    }


def _template_distances(model: TFGWClassifier) -> torch.Tensor:
    """Return the distances between templates, each treated as a graph."""
    pool = _network(model).pool
    count, nodes = pool.template_weights.shape
    with torch.no_grad():
        return pool(
            pool.template_features.flatten(0, 1),
            batch=torch.arange(count).repeat_interleave(nodes),
            structure=pool.template_structure.flatten(),
            node_weights=pool.template_weights.flatten(),
        )


def _predicted_classes(model: TFGWClassifier, distances: torch.Tensor) -> list[int]:
    with torch.no_grad():
        numbers = _network(model).head(distances).argmax(1)
    return [int(model.classes_[number]) for number in numbers]


def _network(model: TFGWClassifier) -> TFGWModel:
    (network,) = members_of(model.model_)  # the paper's models are single networks
    return network


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=float), DIGITS).tolist()

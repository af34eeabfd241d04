"""Take the score of an ensemble apart: it is the mean of its networks' scores, so each part is a mean, too."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfgw.explanations.attribution import Attribution, attribute
from tfgw.explanations.reference import Reference
from tfgw.nn import TFGWModel
from tfgw.train.tasks import Task

SHARED = ("score", "reference_score", "readout", "node_readout", "edges", "node_absent_links", "outputs")
"""What every network says of the same thing: averaged."""

OF_TEMPLATES = ("templates", "template_structure", "template_features", "node_structure", "node_features")
"""What a network says of its own templates: listed one after the other, each with its share of the mean."""


def attribute_ensemble(
    members: Sequence[TFGWModel],
    inputs: dict[str, Any],
    *,
    task: Task = "classification",
    target: int | None = None,
    references: Sequence[Reference | None] | None = None,
) -> Attribution:
    """As :func:`~tfgw.explanations.attribution.attribute`, of the mean score of all networks.

    Args:
        members: The networks of an ensemble.
        inputs: One graph as the networks take it.
        task: What the outputs are.
        target: Number of the output; ``None``: the class that the ensemble predicts, else the first.
        references: What the contributions are counted from in each network; ``None``: the mean of its training graphs.
    """
    starts = [None] * len(members) if references is None else references
    pairs = list(zip(members, starts, strict=True))
    found = [attribute(network, inputs, task=task, target=target, reference=start) for network, start in pairs]
    if target is None and task == "classification" and len(found) > 1:
        chosen = int(_stacked(found, "outputs").mean(0).argmax())
        found = [
            one if one.target == chosen else attribute(network, inputs, task=task, target=chosen, reference=start)
            for one, (network, start) in zip(found, pairs, strict=True)
        ]
    return _mean(found) if len(found) > 1 else found[0]


def _mean(found: Sequence[Attribution]) -> Attribution:
    return Attribution(
        target=found[0].target,
        **{name: _stacked(found, name).mean(0) for name in SHARED},
        **{name: torch.cat([getattr(one, name) for one in found]) / len(found) for name in OF_TEMPLATES},
        distances=torch.cat([one.distances for one in found]),
        plans=torch.cat([one.plans for one in found], dim=1),
    )


def _stacked(found: Sequence[Attribution], name: str) -> Tensor:
    return torch.stack([getattr(one, name) for one in found])

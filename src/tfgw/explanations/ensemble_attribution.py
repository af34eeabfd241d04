"""Attribution of the score of an ensemble: the score and its parts are means over the networks."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tfgw.explanations.attribution import Attribution, attribute
from tfgw.explanations.reference import Reference
from tfgw.nn import TFGWModel
from tfgw.train.tasks import Task

SHARED = ("score", "reference_score", "readout", "node_readout", "edges", "node_absent_links", "outputs")
"""Fields that are averaged over the networks."""

OF_TEMPLATES = ("templates", "template_structure", "template_features", "node_structure", "node_features")
"""Fields with one entry per template, which are concatenated and divided by the number of networks."""


def attribute_ensemble(
    members: Sequence[TFGWModel],
    inputs: dict[str, Any],
    *,
    task: Task = "classification",
    target: int | None = None,
    references: Sequence[Reference | None] | None = None,
) -> Attribution:
    """Like :func:`~tfgw.explanations.attribution.attribute`, for the mean score of all networks.

    Args:
        members: The networks of an ensemble.
        inputs: Inputs of the networks for one graph.
        task: Kind of prediction.
        target: Index of the output (default: the predicted class, or the first output).
        references: Reference of the contributions in each network (default: the mean of its training graphs).
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

"""Attribution of the score of one graph; the formulas are in :mod:`tfgw.explanations`."""

from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.explanations.head_path import mean_gradients
from tfgw.explanations.node_orbits import mean_over_orbits, node_orbits, pair_orbits
from tfgw.explanations.plan_costs import PlanCosts, dense_structure, plan_costs
from tfgw.explanations.reference import Reference
from tfgw.explanations.score_weights import chosen_target, double, score_weights
from tfgw.nn import TFGWModel
from tfgw.nn.batched_structure import batched_shortest_paths
from tfgw.nn.threads import networks_on_one_thread
from tfgw.train.batches import OPTIONAL_INPUTS
from tfgw.train.tasks import Task


class Attribution(NamedTuple):
    """Contributions to the score of one output for a graph of n nodes and E edges; all sums are exact.

    ``score − reference_score`` is the sum of

    - ``templates`` (K,) and ``readout``;
    - ``template_structure`` (K,), ``template_features`` (K,) and ``readout``;
    - ``node_structure`` (K, n), ``node_features`` (K, n) and ``node_readout`` (n,), which together are ``nodes``;
    - ``edges`` (E,), ``node_absent_links`` (n,), ``node_features`` and ``node_readout``: the structure costs of linked
      pairs are attributed to their edges, those of other pairs to their ends.
    """

    target: int
    score: Tensor
    reference_score: Tensor
    templates: Tensor
    readout: Tensor
    template_structure: Tensor
    template_features: Tensor
    node_structure: Tensor
    node_features: Tensor
    node_readout: Tensor
    edges: Tensor
    node_absent_links: Tensor
    outputs: Tensor
    distances: Tensor
    plans: Tensor

    @property
    def nodes(self) -> Tensor:
        """Total contribution of each node, ``(n,)``; sums to ``score − reference_score``."""
        return self.node_structure.sum(0) + self.node_features.sum(0) + self.node_readout


def attribute(
    model: TFGWModel,
    inputs: dict[str, Any],
    *,
    task: Task = "classification",
    target: int | None = None,
    reference: Reference | None = None,
) -> Attribution:
    """Attribute the score of the output ``target`` (default: the predicted class, or the first output).

    Args:
        model: The network; it is explained in double precision, in evaluation mode, on the CPU.
        inputs: Inputs of the network for one graph: ``x``, ``edge_index``, and optionally ``edge_weight``,
            ``structure`` and ``node_weights``.
        task: Kind of prediction.
        target: Index of the output.
        reference: Reference of the contributions (default: :meth:`Reference.of_model`).
    """
    is_ready = not model.training and all(
        p.dtype == torch.float64 and p.device.type == "cpu" for p in model.parameters()
    )
    network = model if is_ready else deepcopy(model).double().cpu().eval()
    parts = {key: double(value) for key, value in inputs.items() if value is not None}
    start = Reference.of_model(network) if reference is None else reference
    with torch.no_grad(), networks_on_one_thread():
        return _attribute(network, parts, task, target, start)


def _attribute(
    model: TFGWModel, inputs: dict[str, Tensor], task: Task, target: int | None, reference: Reference
) -> Attribution:
    edge_index, n, K = inputs["edge_index"], len(inputs["x"]), model.config.num_templates
    graph: dict[str, Any] = {key: value for key, value in inputs.items() if key in OPTIONAL_INPUTS}
    encoded = model.encoder(inputs["x"], edge_index)
    solved = model.pool.solve(encoded, edge_index, **graph)
    assert solved.plans is not None
    readout, start = model.readout(inputs["x"], edge_index, **graph)[0], reference.readout(model)
    outputs = model.head(torch.stack([start, readout]))
    chosen = chosen_target(task, outputs[1], target)
    weights = score_weights(task, outputs.shape[1], chosen)
    slopes = weights @ mean_gradients(model.head, start, readout)

    C = dense_structure(n, edge_index, graph.get("edge_weight"), _matrix(model, inputs))
    costs = plan_costs(solved.plans, C, encoded, model.pool.template_structure, model.pool.template_features)
    alpha = model.pool.alpha.double().expand(K)
    slope = slopes[:K] / (readout[:K] + start[:K]) if model.config.square_root else slopes[:K]
    h = graph.get("node_weights", torch.full((n,), 1 / n, dtype=torch.float64))
    structure_start = _reference_structure(reference, costs, alpha)
    feature_start = reference.distances - structure_start
    pairs = _by(slope, _by(alpha, costs.pairs) - _by(structure_start, torch.outer(h, h).expand(K, n, n)))
    features = _by(slope, _by(1 - alpha, costs.features) - _by(feature_start, h.expand(K, n)))
    node_readout = _node_readout(model, encoded, slopes[K:], reference.sums)

    links = dense_structure(n, edge_index, None, None)
    orbits = node_orbits(inputs["x"], h, links, *_given_matrices(model, C, inputs))
    pairs = mean_over_orbits(pairs.flatten(1), pair_orbits(orbits, C, links)).reshape(K, n, n)
    features = mean_over_orbits(features, orbits)
    node_readout = mean_over_orbits(node_readout, orbits)
    node_structure = (pairs.sum(1) + pairs.sum(2)) / 2
    summed = pairs.sum(0)
    absent = summed.masked_fill(links > 0, 0)
    structure, feature = node_structure.sum(1), features.sum(1)
    return Attribution(
        target=chosen,
        score=weights @ outputs[1],
        reference_score=weights @ outputs[0],
        templates=structure + feature,
        readout=node_readout.sum(),
        template_structure=structure,
        template_features=feature,
        node_structure=node_structure,
        node_features=features,
        node_readout=node_readout,
        edges=(summed / links.clamp_min(1))[edge_index[0], edge_index[1]],  # duplicate edges share the contribution
        node_absent_links=(absent.sum(0) + absent.sum(1)) / 2,
        outputs=outputs[1],
        distances=solved.distances[0],
        plans=solved.plans,
    )


def _by(factors: Tensor, values: Tensor) -> Tensor:
    """Multiply the values of each template by its factor."""
    return factors.reshape(-1, *[1] * (values.dim() - 1)) * values


def _matrix(model: TFGWModel, inputs: dict[str, Tensor]) -> Tensor | None:
    """Return C as a matrix if the structure of the model is not adjacency."""
    if model.config.structure == "shortest_path" and "structure" not in inputs:
        return batched_shortest_paths(inputs["edge_index"], len(inputs["x"]), None, inputs.get("edge_weight"))
    return inputs.get("structure")


def _given_matrices(model: TFGWModel, C: Tensor, inputs: dict[str, Tensor]) -> list[Tensor]:
    """Return the matrices that a symmetry must preserve besides edges; shortest paths follow from these."""
    return [C] if model.config.structure == "precomputed" or "edge_weight" in inputs else []


def _reference_structure(reference: Reference, costs: PlanCosts, alpha: Tensor) -> Tensor:
    """Return the structure part of the reference distances, ``(K,)``."""
    if reference.structure is not None:
        return reference.structure
    structure = alpha * costs.pairs.sum((1, 2))
    total = structure + (1 - alpha) * costs.features.sum(1)
    return reference.distances * torch.where(total > 0, structure / total.clamp_min(1e-300), alpha)


def _node_readout(model: TFGWModel, encoded: Tensor, slopes: Tensor, start: Tensor) -> Tensor:
    """Return the contribution of each node through the sum (or mean) over nodes, ``(n,)``; 0 if there is none."""
    n = len(encoded)
    if model.config.readout == "distances":
        return torch.zeros(n, dtype=torch.float64)
    share = encoded if model.config.readout == "distances+sum" else encoded / n
    return (share - start / n) @ slopes

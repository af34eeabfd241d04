"""Attribution of the score of a kernel machine; the formulas are in :mod:`tfgw.explanations`.

distances and plans of all pairs ─▶ contributions of training graphs ─ weighted_costs ─▶ structure, features ─▶ nodes,
links
"""

from copy import deepcopy
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfgw.explanations.node_orbits import mean_over_orbits, node_orbits, pair_orbits
from tfgw.explanations.score_weights import chosen_target, double, score_weights
from tfgw.explanations.weighted_costs import WeightedCosts, node_weights, structure_matrix, weighted_costs
from tfgw.nn import KernelModel
from tfgw.nn.threads import solver_threads
from tfgw.ot import GraphBatch
from tfgw.ot.pair_details import PairDetails, pair_details
from tfgw.train.tasks import Task

TOP = 10
"""Default number of training graphs that are listed separately."""


class KernelAttribution(NamedTuple):
    """Contributions to the score of one output for a graph of n nodes and E edges; all sums are exact.

    K training graphs are listed, the largest absolute contribution first, for D kinds of distances.
    ``score − reference_score`` is the sum of

    - ``templates`` (K,) and ``rest``, the contribution of all other training graphs;
    - ``template_structure`` (K,), ``template_features`` (K,) and ``rest``;
    - ``node_structure`` (K, n), ``node_features`` (K, n), ``node_rest_structure`` (n,) and ``node_rest_features`` (n,),
      which together are ``nodes``;
    - ``edges`` (E,), ``node_absent_links`` (n,), ``node_features`` and ``node_rest_features``: the structure costs of
      linked pairs are attributed to their edges, those of other pairs to their ends;
    - ``training_contributions`` (N,): all training graphs, in their order.

    ``training_graphs`` (K,) are the indices of the listed graphs among all training graphs. ``kinds`` (K, D) divides
    ``templates`` by kind of distance. ``distances`` (K, D), ``training_distances`` (N, D) and ``plans`` (K, D, n, m)
    are those of the solver; plans of training graphs with fewer than m nodes are padded with zeros.
    """

    target: int
    score: Tensor
    reference_score: Tensor
    training_graphs: Tensor
    training_contributions: Tensor
    training_distances: Tensor
    templates: Tensor
    rest: Tensor
    kinds: Tensor
    template_structure: Tensor
    template_features: Tensor
    node_structure: Tensor
    node_features: Tensor
    node_rest_structure: Tensor
    node_rest_features: Tensor
    edges: Tensor
    node_absent_links: Tensor
    outputs: Tensor
    distances: Tensor
    plans: Tensor

    @property
    def nodes(self) -> Tensor:
        """Total contribution of each node, ``(n,)``; sums to ``score − reference_score``."""
        listed = self.node_structure.sum(0) + self.node_features.sum(0)
        return listed + self.node_rest_structure + self.node_rest_features


def attribute_kernel(
    model: KernelModel,
    inputs: dict[str, Any],
    *,
    task: Task = "classification",
    target: int | None = None,
    reference: Tensor | None = None,
    top: int = TOP,
) -> KernelAttribution:
    """Attribute the score of the output ``target`` (default: the predicted class, or the first output).

    Args:
        model: The kernel machine; it is explained on the CPU.
        inputs: Inputs of the machine for one graph: ``x``, ``edge_index``, and optionally ``edge_weight`` and
            ``node_weights``.
        task: Kind of prediction.
        target: Index of the output.
        reference: Reference distances, ``(num_distances, num_graphs)`` (default: the mean over the training graphs).
        top: Number of training graphs to list separately.
    """
    if top < 1:
        raise ValueError(f"top: must be at least 1, got {top}")
    if model.rates.device.type != "cpu":
        model = deepcopy(model).cpu()
    graph: dict[str, Any] = {key: double(value) for key, value in inputs.items() if value is not None}
    found = [
        pair_details(
            model.described_batch(kind.nodes, **graph),
            model.compared_training_graphs(kind),
            alpha=kind.alpha,
            node_cost=kind.node_cost,
            n_starts=model.config.n_starts,
            num_threads=solver_threads(model.num_threads) or None,
        )
        for kind in model.config.distances
    ]
    distances = [details.diagnosis.distances for details in found]
    outputs = model.scores(distances)[0].detach()
    chosen = chosen_target(task, outputs, target)
    weights = score_weights(task, len(outputs), chosen)
    start = model.mean_distances if reference is None else reference
    shares = _Shares.of(model, torch.cat(distances), start, weights)
    contributions = shares.contributions.sum(0)
    listed = contributions.abs().argsort(descending=True, stable=True)[:top]
    others = torch.ones(len(contributions), dtype=torch.bool).index_fill_(0, listed, False)
    parts = _parts(graph, _costs(model, graph, found, shares, start, listed))
    return KernelAttribution(
        target=chosen,
        score=weights @ outputs,
        reference_score=shares.reference_score,
        training_graphs=listed,
        training_contributions=contributions,
        training_distances=shares.distances.T,
        templates=contributions[listed],
        rest=contributions[others].sum(),
        kinds=shares.contributions[:, listed].T,
        template_structure=parts.structure[:-1].sum(1),
        template_features=parts.features[:-1].sum(1),
        node_structure=parts.structure[:-1],
        node_features=parts.features[:-1],
        node_rest_structure=parts.structure[-1],
        node_rest_features=parts.features[-1],
        edges=parts.edges,
        node_absent_links=parts.absent_links,
        outputs=outputs,
        distances=shares.distances[:, listed].T,
        plans=_plans(model, found, listed, len(graph["x"])),
    )


class _Shares(NamedTuple):
    """Contributions of D kinds of distances to N training graphs, ``(D, N)``, and their slopes in the distance."""

    distances: Tensor
    contributions: Tensor
    slopes: Tensor
    reference_score: Tensor

    @classmethod
    def of(cls, model: KernelModel, distances: Tensor, start: Tensor, weights: Tensor) -> "_Shares":
        factors = model.factor * model.weights[:, None] * (model.coefficients.detach() @ weights)
        there = factors * torch.exp(-(model.rates @ start))
        change = distances - start
        exponents = model.rates @ change
        of_exponents = there * torch.expm1(-exponents) / torch.where(exponents == 0, 1.0, exponents)
        slopes = model.rates.T @ torch.where(exponents == 0, -there, of_exponents)
        return cls(distances, slopes * change, slopes, there.sum())


def _costs(
    model: KernelModel,
    graph: dict[str, Any],
    found: list[PairDetails],
    shares: _Shares,
    start: Tensor,
    listed: Tensor,
) -> WeightedCosts:
    """Sum the contributions of nodes and pairs of nodes over all kinds of distances."""
    each = [
        weighted_costs(
            model.described_batch(kind.nodes, **graph),
            model.described_training_graphs(kind.nodes),
            found[number].plans,
            alpha=kind.alpha,
            node_cost=kind.node_cost,
            slopes=shares.slopes[number],
            reference=start[number],
            listed=listed,
        )
        for number, kind in enumerate(model.config.distances)
    ]
    return reduce(WeightedCosts.plus, each)


class _Parts(NamedTuple):
    """Contributions by group of training graphs, ``(K + 1, n)``, and of edges and absent links over all groups."""

    structure: Tensor
    features: Tensor
    edges: Tensor
    absent_links: Tensor


def _parts(graph: dict[str, Any], costs: WeightedCosts) -> _Parts:
    """Average over symmetries, and divide the contributions of pairs between edges and nodes."""
    n, edge_index = len(graph["x"]), graph["edge_index"]
    batch = GraphBatch(**graph)
    C, links = structure_matrix(batch), torch.zeros(n, n, dtype=torch.float64)
    links.index_put_(tuple(edge_index), torch.ones((), dtype=torch.float64), accumulate=True)
    orbits = node_orbits(graph["x"], node_weights(batch), links, *([C] if "edge_weight" in graph else []))
    pairs = mean_over_orbits(costs.pairs.flatten(1), pair_orbits(orbits, C, links)).reshape(-1, n, n)
    summed = pairs.sum(0)
    absent = summed.masked_fill(links > 0, 0)
    return _Parts(
        structure=(pairs.sum(1) + pairs.sum(2)) / 2,
        features=mean_over_orbits(costs.features, orbits),
        edges=(summed / links.clamp_min(1))[edge_index[0], edge_index[1]],  # duplicate edges share the contribution
        absent_links=(absent.sum(0) + absent.sum(1)) / 2,
    )


def _plans(model: KernelModel, found: list[PairDetails], listed: Tensor, n: int) -> Tensor:
    """Return the plans of the listed training graphs, ``(K, D, n, m)``."""
    sizes = torch.bincount(model.graph_batch, minlength=model.num_graphs)
    place = torch.full((model.num_graphs,), -1).index_copy_(0, listed, torch.arange(len(listed)))
    plans = torch.zeros(len(listed), len(found), n, int(sizes[listed].max()), dtype=torch.float64)
    for kind, details in enumerate(found):
        graph, row, column, mass = details.plans
        shown = place[graph] >= 0
        plans[place[graph[shown]], kind, row[shown], column[shown]] = mass[shown]
    return plans

"""Random problems, and problems with a known answer.

Sizes of different things are different (graphs, features, templates, template nodes): a swapped axis shows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tests.ot.reference import Array, Pair
from tfgw.ot import GraphBatch, Templates

SIZES = (7, 4, 11, 1, 6)  # nodes of each graph
FEATURES = 3
TEMPLATES = 4
TEMPLATE_NODES = 5

STRUCTURES = ("sparse", "weighted", "directed", "dense", "dense_directed")


@dataclass(frozen=True)
class Problem:
    """Graphs, templates and α; :meth:`pair` is one of their pairs in the reference's form."""

    graphs: GraphBatch
    templates: Templates
    alpha: Tensor  # (K,)

    @property
    def sizes(self) -> list[int]:
        return torch.bincount(self.graphs.batch).tolist()

    def nodes_of(self, b: int) -> slice:
        first = sum(self.sizes[:b])
        return slice(first, first + self.sizes[b])

    def structure_of(self, b: int) -> Array:
        """C of one graph as a dense matrix."""
        nodes, n = self.nodes_of(b), self.sizes[b]
        C = np.zeros((n, n))
        if self.graphs.structure is not None:
            first = sum(size**2 for size in self.sizes[:b])
            return self.graphs.structure[first : first + n**2].reshape(n, n).detach().numpy()
        if self.graphs.edge_index is not None:
            sources, targets = self.graphs.edge_index.numpy()
            weights = np.ones(len(sources)) if self.graphs.edge_weight is None else self.graphs.edge_weight.numpy()
            mine = (sources >= nodes.start) & (sources < nodes.stop)
            np.add.at(C, (sources[mine] - nodes.start, targets[mine] - nodes.start), weights[mine])
        return C

    def pair(self, b: int, k: int) -> Pair:
        nodes, n, m = self.nodes_of(b), self.sizes[b], self.templates.features.shape[1]
        h, h_bar = self.graphs.node_weights, self.templates.weights
        C_bar = self.templates.structure
        return Pair(
            C=self.structure_of(b),
            F=self.graphs.x[nodes].numpy(),
            h=np.full(n, 1 / n) if h is None else h[nodes].numpy(),
            C_bar=np.zeros((m, m)) if C_bar is None else C_bar[k].numpy(),
            F_bar=self.templates.features[k].numpy(),
            h_bar=np.full(m, 1 / m) if h_bar is None else h_bar[k].numpy(),
            alpha=float(self.alpha[k]),
        )

    def pairs(self) -> list[tuple[int, int]]:
        return [(b, k) for b in range(len(self.sizes)) for k in range(len(self.alpha))]


def random_problem(
    seed: int,
    kind: str = "sparse",
    *,
    sizes: tuple[int, ...] = SIZES,
    features: int = FEATURES,
    templates: int = TEMPLATES,
    template_nodes: int = TEMPLATE_NODES,
    weights: str = "random",
    alpha: float | None = None,
) -> Problem:
    """Continuous features and random structure: no ties.

    Args:
        seed: Of everything.
        kind: One of `STRUCTURES`, or ``"none"``.
        sizes: Nodes of each graph.
        features: Features per node.
        templates: Number of templates.
        template_nodes: Nodes of each.
        weights: ``"uniform"``, ``"random"``, or ``"zeros"``: random, but a node of each template has none.
        alpha: The same for all templates; without it, one random value each.
    """
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    graphs = {"x": rng.normal(size=(len(batch), features)), "batch": batch, **_structure(rng, kind, sizes)}
    C_bar = rng.uniform(size=(templates, template_nodes, template_nodes))
    if "directed" not in kind:
        C_bar = (C_bar + C_bar.transpose(0, 2, 1)) / 2
    h_bar = np.stack([_weights(rng, template_nodes) for _ in range(templates)])
    if weights == "zeros":
        h_bar[np.arange(templates), rng.integers(template_nodes, size=templates)] = 0
        h_bar /= h_bar.sum(1, keepdims=True)
    if weights != "uniform":
        graphs["node_weights"] = np.concatenate([_weights(rng, n) for n in sizes])
    alphas = rng.uniform(0.2, 0.8, size=templates) if alpha is None else np.full(templates, float(alpha))
    return Problem(
        GraphBatch(**{name: torch.from_numpy(array) for name, array in graphs.items()}),
        Templates(
            torch.from_numpy(rng.normal(size=(templates, template_nodes, features))),
            None if kind == "none" else torch.from_numpy(C_bar),
            None if weights == "uniform" else torch.from_numpy(h_bar),
        ),
        torch.from_numpy(alphas),
    )


def with_near_neighbours(problem: Problem, distance: int = 2) -> Problem:
    """So few edges that they are multiplied one by one; of those of `random_problem`, the kernels make a matrix."""
    edges, weights = problem.graphs.edge_index, problem.graphs.edge_weight
    near = (edges[0] - edges[1]).abs() <= distance
    weights = None if weights is None else weights[near]
    graphs = replace(problem.graphs, edge_index=edges[:, near], edge_weight=weights)
    return Problem(graphs, problem.templates, problem.alpha)


def _weights(rng: np.random.Generator, count: int) -> Array:
    """Random weights, none of them tiny."""
    return 0.5 * rng.dirichlet(np.ones(count)) + 0.5 / count


def _structure(rng: np.random.Generator, kind: str, sizes: tuple[int, ...]) -> dict[str, Array]:
    if kind == "none":
        return {}
    if kind.startswith("dense"):
        blocks = [rng.uniform(size=(n, n)) for n in sizes]
        if kind == "dense":
            blocks = [block + block.T for block in blocks]
        return {"structure": np.concatenate([block.ravel() for block in blocks])}
    edges = []
    for first, n in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        present = rng.random((n, n)) < 0.4
        if kind != "directed":
            present = np.triu(present, 1) | np.triu(present, 1).T
        edges.append(np.argwhere(present).T + first)
    edge_index = np.concatenate(edges, axis=1)
    if kind == "sparse":
        return {"edge_index": edge_index}
    weight = rng.uniform(0.5, 1.5, size=edge_index.shape[1])
    if kind == "weighted":  # the same in both directions
        low, high = np.sort(edge_index, axis=0)
        weight = 0.5 + np.abs(np.sin(1.0 + 7 * low + 13 * high))
    return {"edge_index": edge_index, "edge_weight": weight}


class Copies(NamedTuple):
    """Graphs of one size beside shuffled copies of them: template k is graph k, so their distance is 0."""

    problem: Problem
    matching: Tensor  # (N, K, m): the coupling that shows it for the pairs (k, k), and hh̄ᵀ for the others


def shuffled_copies(seed: int, kind: str, *, count: int = 3, nodes: int = 8) -> Copies:
    problem = random_problem(seed, kind, sizes=(nodes,) * count, templates=count, template_nodes=nodes)
    rng = np.random.default_rng(seed + 1)
    h = problem.graphs.node_weights
    plans = torch.empty(count, nodes, count, nodes, dtype=torch.float64)
    structure, features, weights = [], [], []
    for k in range(count):
        order = rng.permutation(nodes)
        C = problem.structure_of(k)
        own = problem.nodes_of(k)
        structure.append(torch.from_numpy(C[np.ix_(order, order)].copy()))
        features.append(problem.graphs.x[own][order])
        weights.append(h[own][order])
        for b in range(count):
            plans[b, :, k] = torch.outer(h[problem.nodes_of(b)], weights[k])
        plans[k, :, k] = 0
        plans[k, order, k, np.arange(nodes)] = weights[k]
    templates = Templates(torch.stack(features), torch.stack(structure), torch.stack(weights))
    return Copies(Problem(problem.graphs, templates, problem.alpha), plans.flatten(0, 1))


class LinearProblems(NamedTuple):
    """Transport problems between graphs b and templates k, each with the cost ``cost[nodes of b, k]``."""

    cost: Array  # (N, K, m)
    sizes: list[int]
    h: Array  # (N,)
    h_bar: Array  # (K, m)

    def each(self) -> list[tuple[Array, Array, Array]]:
        """(h, h̄, cost) of every problem, graph by graph."""
        ends = np.cumsum(self.sizes)
        rows = [slice(end - n, end) for end, n in zip(ends, self.sizes, strict=True)]
        return [(self.h[r], self.h_bar[k], self.cost[r, k]) for r in rows for k in range(len(self.h_bar))]


Entries = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.full(shape, 1 / shape[-1])


def _dirichlet(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def _very_uneven(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    w = 10 ** rng.uniform(-12, 0, size=shape)
    return w / w.sum(-1, keepdims=True)


def _some_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    w = rng.random(shape) * (rng.random(shape) < 0.6)
    w[..., 0] += w.sum(-1) == 0
    return w / w.sum(-1, keepdims=True)


def _few_values(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    w = rng.integers(1, 4, size=shape).astype(float)
    return w / w.sum(-1, keepdims=True)


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.random(shape)


def _integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 4, size=shape).astype(float)


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(size=shape)


def _constant(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.full(shape, rng.choice([0.0, 0.1, 3.0]))


def _rank_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 3, size=(shape[0], 1, 1)) * rng.integers(0, 3, size=(1, *shape[1:])).astype(float)


def _scaled(scale: float) -> Entries:
    return lambda rng, shape: scale * rng.random(shape)


def _wide_range(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return 10 ** rng.uniform(-6, 6, size=shape)


ANY_SIZE = "any"
# name: sizes ("any", "square", (n, m)), weights, costs
FAMILIES: dict[str, tuple[str | tuple[int | None, int | None], Entries, Entries]] = {
    "generic": (ANY_SIZE, _dirichlet, _random),
    "uniform_square": ("square", _uniform, _random),
    "uniform_square_ties": ("square", _uniform, _integers),
    "uniform": (ANY_SIZE, _uniform, _random),
    "few_weights_ties": (ANY_SIZE, _few_values, _integers),
    "zero_weights": (ANY_SIZE, _some_zero, _random),
    "zero_weights_ties": ("square", _some_zero, _integers),
    "very_uneven": (ANY_SIZE, _very_uneven, _random),
    "constant_cost": (ANY_SIZE, _dirichlet, _constant),
    "constant_cost_square": ("square", _uniform, _constant),
    "rank_one_cost": (ANY_SIZE, _few_values, _rank_one),
    "negative_cost": (ANY_SIZE, _dirichlet, _signed),
    "huge_cost": (ANY_SIZE, _dirichlet, _scaled(1e12)),
    "tiny_cost": (ANY_SIZE, _dirichlet, _scaled(1e-12)),
    "wide_cost": (ANY_SIZE, _dirichlet, _wide_range),
    "one_node": ((1, None), _dirichlet, _random),
    "one_column": ((None, 1), _dirichlet, _random),
    "one_by_one": ((1, 1), _dirichlet, _random),
}
COLUMNS = (2, 12, 32, 33, 65, 129)  # the core keeps its basis in another way above 32, 64 and 128 columns
PROBLEMS_PER_FAMILY = len(COLUMNS) * 9 * 5


def linear_problems(family: str, seed: int) -> list[LinearProblems]:
    """`PROBLEMS_PER_FAMILY` transport problems of a family, one batch for each number of columns."""
    shape, weights, entries = FAMILIES[family]
    rng = np.random.default_rng(seed)
    found = []
    for m in COLUMNS:
        sizes = rng.integers(1, 60, size=9).tolist()
        if shape == "square":
            sizes = [m] * 9
        elif isinstance(shape, tuple):
            sizes, m = sizes if shape[0] is None else [shape[0]] * 9, shape[1] or m
        h = np.concatenate([weights(rng, (n,)) for n in sizes])
        found.append(LinearProblems(entries(rng, (len(h), 5, m)), sizes, h, weights(rng, (5, m))))
    return found

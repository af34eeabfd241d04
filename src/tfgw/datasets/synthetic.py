"""The two synthetic datasets of the paper: regular graphs that message passing cannot distinguish."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.datasets.node_encoding import NodeEncoding

SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)

_CIRCLE_NODES = 41
_BLOCK = 4
_GRAPHS_PER_CLASS = 25

Edges = frozenset[tuple[int, int]]


class Split(NamedTuple):
    """Training and test graphs."""

    train: GraphDataset
    test: GraphDataset


def skip_circles(*, copies: int = 10, seed: int = 0, permute: bool = True) -> Split:
    """SKIP-CIRCLES: cycles of 41 nodes with chords; the class is the length of the chords, one of ``SKIPS``.

    Every graph of a class is a node permutation of one graph: ``copies`` per class for training and as many for test,
    all distinct. ``permute=False`` gives the variant of the authors' code, in which training and test graphs are the
    same ten graphs, one per class in its original node order (``copies`` and ``seed`` then have no effect).
    """
    if copies < 1:
        raise ValueError(f"copies={copies}: must be at least 1")
    circles = [_skip_circle(skip) for skip in SKIPS]
    if not permute:
        dataset = _dataset("SKIP-CIRCLES", [circles], classes=SKIPS, num_nodes=_CIRCLE_NODES)
        return Split(dataset, dataset)
    rng = np.random.default_rng(seed)
    shuffled = [_distinct_permutations(circle, 2 * copies, rng=rng) for circle in circles]
    rounds = list(zip(*shuffled, strict=True))
    return Split(
        train=_dataset("SKIP-CIRCLES", rounds[:copies], classes=SKIPS, num_nodes=_CIRCLE_NODES),
        test=_dataset("SKIP-CIRCLES", rounds[copies:], classes=SKIPS, num_nodes=_CIRCLE_NODES),
    )


def four_cycles(*, seed: int = 0) -> Split:
    """4-CYCLES: 2-regular graphs of 16 nodes; class 1 has a cycle of length 4, class 0 has none.

    The test set has 25 graphs of each class and is sampled first; the training set has as many, from the same random
    stream.
    """
    rng = np.random.default_rng(seed)
    test = _draw_four_cycles(rng)
    train = _draw_four_cycles(rng)
    return Split(train=train, test=test)


def _dataset(name: str, rounds: Sequence[Sequence[Edges]], *, classes: Sequence[int], num_nodes: int) -> GraphDataset:
    """Each round contains one graph of every class, in the order of the classes."""
    graphs = [
        Data(x=torch.ones(num_nodes, 1), edge_index=_edge_index(edges), y=torch.tensor([label]))
        for graphs_of_round in rounds
        for label, edges in enumerate(graphs_of_round)
    ]
    return GraphDataset.from_graphs(graphs, name=name, classes=classes, encoding=NodeEncoding(features="constant"))


def _edge_index(edges: Edges) -> Tensor:
    both = sorted({*edges, *((target, source) for source, target in edges)})
    return torch.tensor(both).T.contiguous()


def _skip_circle(skip: int) -> Edges:
    steps = [(node, (node + step) % _CIRCLE_NODES) for node in range(_CIRCLE_NODES) for step in (1, skip)]
    return _unordered(steps)


def _unordered(pairs: Sequence[tuple[int, int]]) -> Edges:
    return frozenset((min(pair), max(pair)) for pair in pairs)


def _distinct_permutations(edges: Edges, count: int, *, rng: np.random.Generator) -> list[Edges]:
    """Sample permutations that give distinct labelled graphs; those that differ by an automorphism count as one."""
    found: dict[Edges, None] = {}
    while len(found) < count:
        image = rng.permutation(_CIRCLE_NODES).tolist()
        found[_unordered([(image[source], image[target]) for source, target in edges])] = None
    return list(found)


def _draw_four_cycles(rng: np.random.Generator) -> GraphDataset:
    drawn: tuple[list[Edges], list[Edges]] = ([], [])
    while min(map(len, drawn)) < _GRAPHS_PER_CLASS:
        edges, label = _draw_four_cycle(rng)
        if len(drawn[label]) < _GRAPHS_PER_CLASS:
            drawn[label].append(edges)
    return _dataset("4-CYCLES", list(zip(*drawn, strict=True)), classes=(0, 1), num_nodes=4 * _BLOCK)


def _draw_four_cycle(rng: np.random.Generator) -> tuple[Edges, int]:
    """Four blocks A, B, C, D: edges A_i–C_i, B_i–D_i, A_i–B_σ(i), C_i–D_τ(i).

    A_i, C_i, D_τ(i), B_σ(i) form a cycle of length 4 if σ(i) = τ(i), and no other cycle is that short.
    """
    sigma, tau = rng.permutation(_BLOCK).tolist(), rng.permutation(_BLOCK).tolist()
    a, b, c, d = (range(start, start + _BLOCK) for start in range(0, 4 * _BLOCK, _BLOCK))
    edges = [
        pair for i in range(_BLOCK) for pair in ((a[i], c[i]), (b[i], d[i]), (a[i], b[sigma[i]]), (c[i], d[tau[i]]))
    ]
    return _unordered(edges), int(any(s == t for s, t in zip(sigma, tau, strict=True)))


GENERATORS = {"SKIP-CIRCLES": skip_circles, "4-CYCLES": four_cycles}
"""The generated datasets by name."""

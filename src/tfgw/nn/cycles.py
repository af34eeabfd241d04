"""Short cycles through the nodes of a graph, which Weisfeiler–Lehman labels and averages cannot see."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

LONGEST_CYCLE = 8
"""Number of nodes of the longest cycles that are found, an even number."""


def shortest_cycles(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return the number of nodes of the shortest cycle through each node, ``(num_nodes,)``.

    It is 0 if there is no cycle of at most ``LONGEST_CYCLE`` nodes. Loops and repeated edges are no cycles.

    Args:
        edge_index: Edges ``(2, num_edges)``, in both directions.
        num_nodes: Number of nodes.
    """
    lengths: list[int] = []
    for neighbours in _parts(edge_index.numpy(), num_nodes):
        _remove_trees(neighbours)
        lengths += (_shortest_cycle(neighbours, node) for node in range(len(neighbours)))
    return torch.tensor(lengths, dtype=torch.int64)


def _parts(edges: np.ndarray, num_nodes: int) -> Iterator[list[set[int]]]:
    """Yield the neighbours of each node, for one range of nodes without edges to others at a time.

    The graphs of a batch are such ranges. The sets of all graphs together would need much memory.
    """
    source, target = edges[:, np.argsort(edges[0], kind="stable")]
    begin = np.searchsorted(source, np.arange(num_nodes + 1))
    farthest = np.arange(num_nodes)
    np.maximum.at(farthest, source, target)
    ends = np.flatnonzero(np.maximum.accumulate(farthest) == np.arange(num_nodes)) + 1
    for first, last in pairwise([0, *ends.tolist()]):
        near = (target[begin[first] : begin[last]] - first).tolist()
        places = (begin[first : last + 1] - begin[first]).tolist()
        yield [set(near[i:j]) - {node} for node, (i, j) in enumerate(pairwise(places))]


def _remove_trees(neighbours: list[set[int]]) -> None:
    """Remove the edges of nodes with one neighbour until there are none: they are on no cycle, but may be many."""
    leaves = [node for node, near in enumerate(neighbours) if len(near) == 1]
    while leaves:
        leaf = leaves.pop()
        if not neighbours[leaf]:  # the other end of the last edge of a tree
            continue
        parent = neighbours[leaf].pop()
        neighbours[parent].remove(leaf)
        if len(neighbours[parent]) == 1:
            leaves.append(parent)


def _shortest_cycle(neighbours: list[set[int]], start: int) -> int:
    """Search breadth-first. Each neighbour begins a branch; where two branches meet first, they close the cycle."""
    branch = {node: node for node in neighbours[start]}
    front = neighbours[start]
    for length in range(3, LONGEST_CYCLE, 2):
        reached: dict[int, int] = {}
        is_even = False
        for node in front:
            for near in neighbours[node]:
                if near == start:
                    continue
                if branch.get(near, branch[node]) != branch[node]:
                    return length
                if near not in branch and reached.setdefault(near, branch[node]) != branch[node]:
                    is_even = True
        if is_even:
            return length + 1
        branch |= reached
        front = set(reached)
    return 0

"""Short cycles through the nodes of a graph, which Weisfeiler–Lehman labels and averages cannot see."""

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
    neighbours: list[set[int]] = [set() for _ in range(num_nodes)]
    for source, target in edge_index.T.tolist():
        if source != target:
            neighbours[source].add(target)
    _remove_trees(neighbours)
    return torch.tensor([_shortest_cycle(neighbours, node) for node in range(num_nodes)], dtype=torch.int64)


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
    branch = {node: node for node in neighbours[start]} | {start: start}
    front = neighbours[start]
    for length in range(3, LONGEST_CYCLE, 2):
        reached: dict[int, int] = {}
        is_even = False
        for node in front:
            for near in neighbours[node] - {start}:
                if branch.get(near, branch[node]) != branch[node]:
                    return length
                if near not in branch and reached.setdefault(near, branch[node]) != branch[node]:
                    is_even = True
        if is_even:
            return length + 1
        branch |= reached
        front = set(reached)
    return 0

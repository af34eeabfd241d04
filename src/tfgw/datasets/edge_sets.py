"""Edges without weights are a set: duplicates count once, and self-loops are ignored."""

import numpy as np


def distinct_edges(edge_index: np.ndarray, num_nodes: int) -> np.ndarray | None:
    """Return the positions of the first occurrence of each edge, without self-loops, or ``None`` if these are all."""
    source, target = edge_index
    keys = source * num_nodes + target
    has_loops = bool((source == target).any())
    if not has_loops and bool((keys[1:] > keys[:-1]).all()):
        return None
    first = np.sort(np.unique(keys, return_index=True)[1])
    kept = first[source[first] != target[first]]
    return None if len(kept) == len(keys) else kept

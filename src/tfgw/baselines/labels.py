"""Hashed node labels: equal neighbourhoods have equal labels in all graphs and runs, without a dictionary."""

import hashlib

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


def row_labels(x: Tensor) -> np.ndarray:
    """Return a 64-bit hash of each row of features."""
    rows, row_of_node = np.unique(x.double().numpy() + 0.0, axis=0, return_inverse=True)  # −0 is 0
    digests = [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)[row_of_node.reshape(-1)]


def refined_labels(graph: Data, num_iterations: int) -> Tensor:
    """Return the Weisfeiler–Lehman labels of each node after 0, 1, … iterations, ``(num_nodes, 1 + num_iterations)``.

    The new label of a node is a hash of its label and the multiset of its neighbours' labels. The sum of hashed labels
    does not depend on their order, and different multisets collide only by chance.
    """
    source, target = graph.edge_index.numpy()
    levels = [row_labels(graph.x)]
    for _ in range(num_iterations):
        summed = np.zeros(graph.num_nodes, dtype=np.uint64)
        np.add.at(summed, target, _scrambled(levels[-1])[source])
        levels.append(_scrambled(_scrambled(levels[-1]) + _scrambled(summed + np.uint64(1))))
    return torch.from_numpy(np.stack(levels, axis=1).view(np.int64))


def _scrambled(numbers: np.ndarray) -> np.ndarray:
    """Apply a fixed pseudo-random permutation of the 64-bit numbers (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""Nodes that carry their surroundings, without anything to learn: Weisfeiler–Lehman labels and averaged features.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler–Lehman Graph Kernels. JMLR 2011.
Togninalli, Ghisu, Llinares-López, Rieck, Borgwardt: Wasserstein Weisfeiler–Lehman Graph Kernels. NeurIPS 2019.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import degree

CODE_BITS = 32
"""Features of the code of a label."""


def refined_features(x: Tensor, edge_index: Tensor, level: int, *, discrete: bool) -> Tensor:
    """Features of each node and of its surroundings up to ``level`` edges away, ``(num_nodes, channels)``.

    Features of different levels have equal shares in the squared distance between two nodes, and that between two
    nodes with nothing in common is about 1 if features are discrete.

    Args:
        x: Node features ``(num_nodes, in_channels)``, of one graph or of a batch.
        edge_index: Edges ``(2, num_edges)``, each in both directions.
        level: Number of refinement steps.
        discrete: Whether each row of features is a label; otherwise features are averaged over neighbours.
    """
    if discrete:
        return label_codes(refined_labels(x, edge_index, level)) / (level + 1) ** 0.5
    return averaged_features(x, edge_index, level) / ((level + 1) * x.shape[1]) ** 0.5


def row_labels(x: Tensor) -> np.ndarray:
    """One 64-bit number for each row of features, equal for equal rows and else different but for one chance in 2⁶⁴."""
    rows, row_of_node = np.unique(x.double().numpy() + 0.0, axis=0, return_inverse=True)  # −0 is 0
    digests = [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)[row_of_node.reshape(-1)]


def refined_labels(x: Tensor, edge_index: Tensor, num_steps: int) -> Tensor:
    """Weisfeiler–Lehman labels of each node after 0, 1, … steps, ``(num_nodes, 1 + num_steps)``.

    A step gives every node a number that depends on its own and on the multiset of its neighbours': the sum of
    scrambled numbers does not depend on their order, and different multisets collide by chance only.
    """
    source, target = edge_index.numpy()
    levels = [row_labels(x)]
    for _ in range(num_steps):
        summed = np.zeros(len(x), dtype=np.uint64)
        np.add.at(summed, target, _scrambled(levels[-1])[source])
        levels.append(_scrambled(_scrambled(levels[-1]) + _scrambled(summed + np.uint64(1))))
    return torch.from_numpy(np.stack(levels, axis=1).view(np.int64))


def label_codes(labels: Tensor) -> Tensor:
    """Each label as a vector: two equal labels are at squared distance 0, two different ones at 1 ± 0.18.

    Args:
        labels: 64-bit numbers ``(num_nodes, num_labels)``.

    Returns:
        The codes of the labels of each node side by side, ``(num_nodes, num_labels * CODE_BITS)``.
    """
    numbers = _scrambled(labels.numpy().view(np.uint64))
    bits = (numbers[:, :, None] >> np.arange(CODE_BITS, dtype=np.uint64)) & np.uint64(1)
    signs = torch.from_numpy(bits.reshape(len(numbers), -1).astype(np.float64) * 2 - 1)
    return signs / (2 * CODE_BITS) ** 0.5


def averaged_features(x: Tensor, edge_index: Tensor, num_steps: int) -> Tensor:
    """x ← ½ (x + mean of the neighbours' x), all steps side by side, ``(num_nodes, (1 + num_steps) * channels)``.

    The features of a node without neighbours stay as they are.
    """
    source, target = edge_index
    neighbours = degree(target, len(x), dtype=torch.float64)[:, None]
    levels = [x.double()]
    for _ in range(num_steps):
        last = levels[-1]
        mean = torch.zeros_like(last).index_add_(0, target, last[source]) / neighbours.clamp_min(1)
        levels.append(torch.where(neighbours > 0, (last + mean) / 2, last))
    return torch.cat(levels, dim=1)


def _scrambled(numbers: np.ndarray) -> np.ndarray:
    """A fixed permutation of the 64-bit numbers without visible pattern (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

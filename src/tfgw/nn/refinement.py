"""Node features that describe the neighbourhood, without parameters: Weisfeiler–Lehman labels, averaged features.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler–Lehman Graph Kernels. JMLR 2011.
Togninalli, Ghisu, Llinares-López, Rieck, Borgwardt: Wasserstein Weisfeiler–Lehman Graph Kernels. NeurIPS 2019.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

CODE_BITS = 32
"""Number of features that encode a label."""
ROUNDING = 2**32
"""Averaged degrees are multiples of the reciprocal."""


def disjoint_union(graphs: Sequence[Data]) -> tuple[Tensor, Tensor, list[int]]:
    """Return the node features and edges of all graphs as one graph, and the number of nodes of each.

    Refining one large graph is much faster than refining many small ones.
    """
    sizes = [graph.num_nodes for graph in graphs]
    first_nodes = np.cumsum([0, *sizes[:-1]]).tolist()
    edges = [graph.edge_index + first for graph, first in zip(graphs, first_nodes, strict=True)]
    return torch.cat([graph.x for graph in graphs]), torch.cat(edges, dim=1), sizes


def row_labels(x: Tensor) -> np.ndarray:
    """Hash each row of features to a 64-bit number. Different rows collide with probability 2⁻⁶⁴."""
    rows = [row.tobytes() for row in x.double().numpy() + 0.0]  # −0 is 0
    digests = {row: hashlib.blake2b(row, digest_size=8).digest() for row in set(rows)}
    return np.frombuffer(b"".join(digests[row] for row in rows), dtype=np.uint64)


def refined_labels(x: Tensor, edge_index: Tensor, num_steps: int) -> Tensor:
    """Return the Weisfeiler–Lehman labels of each node after 0, 1, … steps, ``(num_nodes, 1 + num_steps)``.

    A step hashes the label of a node and the multiset of its neighbours' labels. The sum of hashes does not depend on
    the order of neighbours, and different multisets collide only by chance.
    """
    source, target = edge_index.numpy()
    levels = [row_labels(x)]
    for _ in range(num_steps):
        summed = np.zeros(len(x), dtype=np.uint64)
        np.add.at(summed, target, _scrambled(levels[-1])[source])
        levels.append(_scrambled(_scrambled(levels[-1]) + _scrambled(summed + np.uint64(1))))
    return torch.from_numpy(np.stack(levels, axis=1).view(np.int64))


def label_numbers(labels: Tensor) -> Tensor:
    """Convert 64-bit labels to numbers in double precision, which holds 53 of their bits."""
    return (labels >> 11).double()


def label_codes(labels: Tensor) -> Tensor:
    """Encode each label as a vector. Equal labels are at squared distance 0, different labels at 1 ± 0.18.

    Args:
        labels: 64-bit numbers ``(num_nodes, num_labels)``.

    Returns:
        The concatenated codes of the labels of each node, ``(num_nodes, num_labels * CODE_BITS)``.
    """
    numbers = _scrambled(labels.numpy().view(np.uint64))
    bits = (numbers[:, :, None] >> np.arange(CODE_BITS, dtype=np.uint64)) & np.uint64(1)
    signs = torch.from_numpy(bits.reshape(len(numbers), -1).astype(np.float64) * 2 - 1)
    return signs / (2 * CODE_BITS) ** 0.5


def averaged_features(x: Tensor, edge_index: Tensor, num_steps: int) -> Tensor:
    """Iterate x ← ½ (x + mean of the neighbours' x) and concatenate all steps.

    Features of nodes without neighbours do not change. The result is ``(num_nodes, (1 + num_steps) * channels)``.
    """
    source, target = edge_index
    neighbours = degree(target, len(x), dtype=torch.float64)[:, None]
    levels = [x.double()]
    for _ in range(num_steps):
        last = levels[-1]
        mean = torch.zeros_like(last).index_add_(0, target, last[source]) / neighbours.clamp_min(1)
        levels.append(torch.where(neighbours > 0, (last + mean) / 2, last))
    return torch.cat(levels, dim=1)


def averaged_degrees(edge_index: Tensor, num_nodes: int, num_steps: int) -> Tensor:
    """Return log(1 + degree) of each node, averaged over neighbours as by :func:`averaged_features`.

    Values are rounded, because the last bits of a mean depend on the order of the neighbours: nodes with the same
    neighbourhood must be equal for distances to be 0.
    """
    degrees = degree(edge_index[1], num_nodes, dtype=torch.float64)
    return averaged_features(degrees.log1p()[:, None], edge_index, num_steps).mul(ROUNDING).round() / ROUNDING


def _scrambled(numbers: np.ndarray) -> np.ndarray:
    """Hash 64-bit numbers by a fixed pseudorandom permutation (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""Kernel of Fused Gromov–Wasserstein distances between graphs, in a support vector machine.

Vayer, Chapel, Flamary, Tavenard, Courty: Optimal Transport for structured data with application on graphs. ICML 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from tfgw import ot
from tfgw.baselines.distance_kernel import DistanceKernel, values
from tfgw.baselines.distance_table import Comparison
from tfgw.baselines.stacking import graph_of_each_node, padded, uniform_weights
from tfgw.datasets import shortest_paths
from tfgw.nn.tfgw_pooling import Structure


@dataclass(kw_only=True, eq=False, repr=False)
class FGWKernel(DistanceKernel):
    """Support vector machine with the kernel exp(−γ FGW), on pairwise distances from this package's solver.

    The kernel is not positive definite. As its authors do, it is given to the machine as it is, as a noisy
    observation of one that is. :class:`~tfgw.baselines.distance_kernel.DistanceKernel` documents the other parameters.

    Args:
        alpha: Trade-off between features (0) and structure (1); of several, the best in cross-validation is taken.
        structure: What graphs are compared by: ``"adjacency"`` or ``"shortest_path"``.
    """

    alpha: float | Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
    structure: Structure = "adjacency"

    def _comparisons(self, graphs: Sequence[Data]) -> list[Comparison]:
        if self.structure not in ("adjacency", "shortest_path"):
            raise ValueError(f"structure: must be 'adjacency' or 'shortest_path', got {self.structure!r}")
        for alpha in values(self.alpha):
            if not 0 <= alpha <= 1:
                raise ValueError(f"alpha: must lie in [0, 1], got {alpha}")
        return [FGWComparison(alpha, self.structure, num_threads=self.num_threads) for alpha in values(self.alpha)]


class StructuredGraph(NamedTuple):
    """Node features ``(n, d)``, edges, and the structure matrix ``(n, n)``."""

    x: Tensor
    edge_index: Tensor
    matrix: Tensor


@dataclass(frozen=True)
class FGWComparison(Comparison):
    """FGW distances between graphs with nodes of equal weight."""

    alpha: float
    structure: Structure

    @property
    def name(self) -> str:
        return f"fgw-{self.structure}-alpha={self.alpha:g}"

    def prepare(self, graph: Data) -> StructuredGraph:
        return StructuredGraph(graph.x, graph.edge_index, _matrix(graph, self.structure).double())

    def distances(self, graphs: Sequence[StructuredGraph], templates: Sequence[StructuredGraph]) -> Tensor:
        sizes = [len(graph.x) for graph in templates]
        matrices = padded([pad(graph.matrix, (0, max(sizes) - len(graph.x))) for graph in templates], max(sizes))
        return ot.fgw(
            self._stacked(graphs),
            ot.Templates(padded([graph.x for graph in templates], max(sizes)), matrices, uniform_weights(sizes)),
            self.alpha,
            plans=None,
            num_threads=self.num_threads,
        ).distances

    def _stacked(self, graphs: Sequence[StructuredGraph]) -> ot.GraphBatch:
        sizes = [len(graph.x) for graph in graphs]
        x, batch = torch.cat([graph.x for graph in graphs]), graph_of_each_node(sizes)
        if self.structure == "shortest_path":
            return ot.GraphBatch(x, batch=batch, structure=torch.cat([graph.matrix.flatten() for graph in graphs]))
        first = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
        edges = [graph.edge_index + shift for graph, shift in zip(graphs, first, strict=True)]
        return ot.GraphBatch(x, batch=batch, edge_index=torch.cat(edges, dim=1))


def _matrix(graph: Data, structure: Structure) -> Tensor:
    if structure == "shortest_path":
        return shortest_paths(graph.edge_index, graph.num_nodes)
    adjacency: Tensor = to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0]
    return adjacency

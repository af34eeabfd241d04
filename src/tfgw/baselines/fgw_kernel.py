"""Kernel of Fused Gromov–Wasserstein distances between graphs, in a support vector machine.

Vayer, Chapel, Flamary, Tavenard, Courty: Optimal Transport for structured data with application on graphs. ICML 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data

from tfgw.baselines.distance_kernel import DistanceKernel, values
from tfgw.datasets import ShortestPaths
from tfgw.estimators.distance_table import Comparison
from tfgw.nn.tfgw_pooling import Structure


@dataclass(kw_only=True, eq=False, repr=False)
class FGWKernel(DistanceKernel):
    """Support vector machine with the kernel exp(−γ FGW), on pairwise distances from this package's solver.

    The kernel is not positive definite. Like its authors, we pass it to the support vector machine unchanged, as a
    noisy observation of a positive definite kernel. :class:`~tfgw.baselines.distance_kernel.DistanceKernel` documents
    the other parameters.

    Args:
        alpha: Trade-off between features (0) and structure (1). If several are given, the best one is selected by
            cross-validation.
        structure: Structure matrix of the graphs: ``"adjacency"`` or ``"shortest_path"``.
    """

    alpha: float | Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
    structure: Structure = "adjacency"

    def _comparisons(self, graphs: Sequence[Data]) -> list[Comparison]:
        if self.structure not in ("adjacency", "shortest_path"):
            raise ValueError(f"structure: must be 'adjacency' or 'shortest_path', got {self.structure!r}")
        alphas = values("alpha", self.alpha)
        for alpha in alphas:
            if not 0 <= alpha <= 1:
                raise ValueError(f"alpha: must lie in [0, 1], got {alpha}")
        return [FGWComparison(alpha, self.structure, num_threads=self.num_threads) for alpha in alphas]


@dataclass(frozen=True)
class FGWComparison(Comparison):
    """FGW distances between graphs with uniform node weights."""

    alpha: float
    structure: Structure

    @property
    def name(self) -> str:
        return f"fgw-{self.structure}-alpha={self.alpha:g}"

    @property
    def options(self) -> dict[str, Any]:
        return {"alpha": self.alpha}

    def prepare(self, graph: Data) -> Data:
        plain = Data(x=graph.x, edge_index=graph.edge_index)
        return ShortestPaths()(plain) if self.structure == "shortest_path" else plain

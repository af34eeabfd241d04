"""Wasserstein Weisfeiler–Lehman kernel: optimal transport between node neighbourhoods.

Togninalli, Ghisu, Llinares-López, Rieck, Borgwardt: Wasserstein Weisfeiler–Lehman Graph Kernels. NeurIPS 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch_geometric.data import Data

from tfgw.baselines.distance_kernel import DistanceKernel, values
from tfgw.estimators.distance_table import Comparison
from tfgw.nn.refinement import averaged_features, label_numbers, refined_labels

Version = Literal["discrete", "continuous"]


@dataclass(kw_only=True, eq=False, repr=False)
class WWL(DistanceKernel):
    """Support vector machine with the kernel exp(−γ D) of Wasserstein distances D between Weisfeiler–Lehman sequences.

    In the discrete version, every row of features is a label. A node is represented by the sequence of its refined
    labels, and the cost between two nodes is the share of the sequence in which they differ (Hamming). This kernel is
    positive definite. In the continuous version, the features of a node are repeatedly averaged with the mean of its
    neighbours. The results of all iterations are concatenated, and the cost is the Euclidean distance. This kernel may
    be indefinite; like its authors, we then train the support vector machine in a Kreĭn space.
    :class:`~tfgw.baselines.distance_kernel.DistanceKernel` documents the other parameters.

    Args:
        num_iterations: Number of refinement iterations. If several are given, the best one is selected by
            cross-validation.
        version: ``"discrete"`` or ``"continuous"``. If ``None``, discrete if all features of the graphs are 0 or 1.
    """

    num_iterations: int | Sequence[int] = (1, 2, 3, 4)
    version: Version | None = None

    def _learn_input(self, X: object) -> list[Data]:
        graphs = super()._learn_input(X)
        self.version_ = self._version(graphs)
        return graphs

    def _version(self, graphs: Sequence[Data]) -> Version:
        if self.version not in ("discrete", "continuous", None):
            raise ValueError(f"version: must be 'discrete', 'continuous' or None, got {self.version!r}")
        if self.version is not None:
            return self.version
        return "discrete" if all(bool(((g.x == 0) | (g.x == 1)).all()) for g in graphs) else "continuous"

    def _comparisons(self, graphs: Sequence[Data]) -> list[Comparison]:
        version, steps = self._version(graphs), values("num_iterations", self.num_iterations)
        for iterations in steps:
            if iterations < 0:
                raise ValueError(f"num_iterations: must not be negative, got {iterations}")
        return [WWLComparison(number, version, num_threads=self.num_threads) for number in steps]

    def _is_indefinite(self) -> bool:
        return self.version_ == "continuous"


@dataclass(frozen=True)
class WWLComparison(Comparison):
    """Wasserstein distances between sequences of labels, or of averaged features."""

    num_iterations: int
    version: Version

    @property
    def name(self) -> str:
        return f"wwl-{self.version}-iterations={self.num_iterations}"

    @property
    def options(self) -> dict[str, Any]:
        return {"alpha": 0.0, "node_cost": "hamming" if self.version == "discrete" else "euclidean"}

    def prepare(self, graph: Data) -> Data:
        if self.version == "discrete":
            return Data(x=label_numbers(refined_labels(graph.x, graph.edge_index, self.num_iterations)))
        return Data(x=averaged_features(graph.x, graph.edge_index, self.num_iterations))

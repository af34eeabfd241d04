"""Weisfeiler–Lehman subtree kernel, by GraKeL.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler-Lehman Graph Kernels. JMLR 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tfgw.baselines.classical import ClassicalBaseline
from tfgw.baselines.distance_kernel import COSTS, values
from tfgw.baselines.kernel_svm import Choice, KernelSVM, choose
from tfgw.baselines.requirements import require
from tfgw.nn.refinement import row_labels


@dataclass(kw_only=True, eq=False, repr=False)
class WL(ClassicalBaseline):
    """Support vector machine with the normalised subtree kernel; every row of features is a label.

    Real-valued features make nearly every node a label of its own, and the kernel blind: give it discrete ones, as
    ``load(..., features="labels")`` does. Where a parameter has several values, the best ones are chosen by
    cross-validation inside the training graphs.

    Args:
        C: Cost of errors of the support vector machine: one value or several.
        num_iterations: Steps of refinement: one number or several.
        inner_folds: Folds of the cross-validation that chooses; classes with fewer graphs lower it.
        random_state: Seed of the folds.

    Attributes:
        classes_: The labels.
        C_, num_iterations_: The values that were chosen.
        inner_score_: Accuracy of the choice in cross-validation; ``None`` if there was nothing to choose.
    """

    C: float | Sequence[float] = COSTS
    num_iterations: int | Sequence[int] = (1, 2, 3, 4)
    inner_folds: int = 10

    node_features = ("labels", "attributes", "degree")
    """What experiments load of a dataset: the first of these that it has."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Distances to the margins; of two classes ``(num_graphs,)``."""
        return self.machine_.decision_function(self._between(self._read_graphs(X)))

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        inputs = [_as_grakel(graph) for graph in graphs]
        refinements, costs = [_refinement(steps) for steps in values(self.num_iterations)], values(self.C)
        kernels = [kernel.fit_transform(inputs) for kernel in refinements]
        if len(kernels) * len(costs) == 1:
            choice = Choice(0, costs[0], None)
        else:
            choice = choose(enumerate(kernels), labels, costs=costs, folds=self.inner_folds, seed=self._seed())
        self.refinement_ = refinements[choice.kernel]
        self.num_iterations_ = values(self.num_iterations)[choice.kernel]
        self.C_, self.inner_score_ = choice.cost, choice.score
        self.machine_ = KernelSVM(self.C_).fit(kernels[choice.kernel], labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.machine_.predict(self._between(graphs))

    def _between(self, graphs: list[Data]) -> np.ndarray:
        """The kernel between graphs and the training graphs."""
        return self.refinement_.transform([_as_grakel(graph) for graph in graphs])


def _refinement(steps: int) -> Any:
    if steps < 1:
        raise ValueError(f"num_iterations: must be at least 1, got {steps}")
    grakel = require("grakel")
    return grakel.WeisfeilerLehman(n_iter=steps, base_graph_kernel=grakel.VertexHistogram, normalize=True)


def _as_grakel(graph: Data) -> list[dict[int, Any]]:
    """Neighbours of each node, and its label."""
    neighbours: dict[int, Any] = {node: {} for node in range(graph.num_nodes)}
    for source, target in graph.edge_index.T.tolist():
        neighbours[source][target] = 1.0
    return [neighbours, dict(enumerate(row_labels(graph.x).tolist()))]

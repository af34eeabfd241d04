"""Weisfeiler–Lehman subtree kernel, computed by GraKeL.

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
    """Support vector machine with the normalised subtree kernel; every distinct row of features is a label.

    With real-valued features, nearly every node has its own label, and the kernel is useless. Use discrete features,
    such as those of ``load(..., features="labels")``. If a parameter has several values, the best ones are selected by
    cross-validation on the training graphs.

    Args:
        C: Cost parameter of the support vector machine: one value or several.
        num_iterations: Number of refinement iterations: one number or several.
        inner_folds: Number of folds of the inner cross-validation, reduced for classes with fewer graphs.
        random_state: Random seed for the folds.

    Attributes:
        classes_: Class labels.
        C_: Selected cost parameter.
        num_iterations_: Selected number of iterations.
        inner_score_: Accuracy of the selected values in cross-validation; ``None`` if there was nothing to select.
    """

    C: float | Sequence[float] = COSTS
    num_iterations: int | Sequence[int] = (1, 2, 3, 4)
    inner_folds: int = 10

    node_features = ("labels", "attributes", "degree")
    """Node features in experiments: the first of these that a dataset has."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Distances to the margins; ``(num_graphs,)`` for two classes."""
        return self.machine_.decision_function(self._between(self._read_graphs(X)))

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        inputs = [_as_grakel(graph) for graph in graphs]
        iterations, costs = values("num_iterations", self.num_iterations), values("C", self.C)
        refinements = [_refinement(steps) for steps in iterations]
        kernels = [kernel.fit_transform(inputs) for kernel in refinements]
        if len(kernels) * len(costs) == 1:
            choice = Choice(0, costs[0], None)
        else:
            choice = choose(enumerate(kernels), labels, costs=costs, folds=self.inner_folds, seed=self._seed())
        self.refinement_ = refinements[choice.kernel]
        self.num_iterations_ = iterations[choice.kernel]
        self.C_, self.inner_score_ = choice.cost, choice.score
        self.machine_ = KernelSVM(self.C_).fit(kernels[choice.kernel], labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.machine_.predict(self._between(graphs))

    def _between(self, graphs: list[Data]) -> np.ndarray:
        """Return the kernel between graphs and the training graphs."""
        return self.refinement_.transform([_as_grakel(graph) for graph in graphs])


def _refinement(steps: int) -> Any:
    if steps < 1:
        raise ValueError(f"num_iterations: must be at least 1, got {steps}")
    grakel = require("grakel")
    return grakel.WeisfeilerLehman(n_iter=steps, base_graph_kernel=grakel.VertexHistogram, normalize=True)


def _as_grakel(graph: Data) -> list[dict[int, Any]]:
    """Return the neighbours and the label of each node."""
    neighbours: dict[int, Any] = {node: {} for node in range(graph.num_nodes)}
    for source, target in graph.edge_index.T.tolist():
        neighbours[source][target] = 1.0
    return [neighbours, dict(enumerate(row_labels(graph.x).tolist()))]

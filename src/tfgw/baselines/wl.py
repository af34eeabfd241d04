"""Weisfeiler–Lehman subtree kernel.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn, Borgwardt: Weisfeiler-Lehman Graph Kernels. JMLR 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from torch_geometric.data import Data

from tfgw.baselines.classical import ClassicalBaseline
from tfgw.baselines.distance_kernel import COSTS, values
from tfgw.baselines.kernel_svm import Choice, KernelSVM, choose
from tfgw.nn.refinement import disjoint_union, refined_labels


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
        iterations, costs = values("num_iterations", self.num_iterations), values("C", self.C)
        for steps in iterations:
            if steps < 1:
                raise ValueError(f"num_iterations: must be at least 1, got {steps}")
        self.nodes_ = labelled_nodes(graphs, max(iterations))
        kernels = [subtree_kernel(self.nodes_.up_to(steps), self.nodes_.up_to(steps)) for steps in iterations]
        if len(kernels) * len(costs) == 1:
            choice = Choice(0, costs[0], None)
        else:
            choice = choose(enumerate(kernels), labels, costs=costs, folds=self.inner_folds, seed=self._seed())
        self.num_iterations_ = iterations[choice.kernel]
        self.nodes_ = self.nodes_.up_to(self.num_iterations_)
        self.C_, self.inner_score_ = choice.cost, choice.score
        self.machine_ = KernelSVM(self.C_).fit(kernels[choice.kernel], labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.machine_.predict(self._between(graphs))

    def _between(self, graphs: list[Data]) -> np.ndarray:
        """Return the kernel between graphs and the training graphs."""
        return subtree_kernel(labelled_nodes(graphs, self.num_iterations_), self.nodes_)


class LabelledNodes(NamedTuple):
    """All nodes of several graphs."""

    graph: np.ndarray  # (num_nodes,): index of the graph
    labels: np.ndarray  # (num_nodes, 1 + num_iterations): Weisfeiler–Lehman labels
    num_graphs: int

    def up_to(self, num_iterations: int) -> "LabelledNodes":
        return self._replace(labels=self.labels[:, : 1 + num_iterations])


def labelled_nodes(graphs: Sequence[Data], num_iterations: int) -> LabelledNodes:
    """Refine the labels of the nodes of all graphs."""
    x, edge_index, sizes = disjoint_union(graphs)
    labels = refined_labels(x, edge_index, num_iterations)
    return LabelledNodes(np.repeat(np.arange(len(graphs)), sizes), labels.numpy(), len(graphs))


def subtree_kernel(rows: LabelledNodes, columns: LabelledNodes) -> np.ndarray:
    """Return the cosines between the label counts of graphs, ``(rows.num_graphs, columns.num_graphs)``.

    Labels of different iterations are different.
    """
    products: Any = 0.0
    norms: list[Any] = [0.0, 0.0]
    for row_labels, column_labels in zip(rows.labels.T, columns.labels.T, strict=True):
        _, number = np.unique(np.concatenate([row_labels, column_labels]), return_inverse=True)
        counts = [
            csr_array((np.ones(len(of)), (side.graph, of)), shape=(side.num_graphs, number.max() + 1))
            for side, of in ((rows, number[: len(row_labels)]), (columns, number[len(row_labels) :]))
        ]
        products = products + (counts[0] @ counts[1].T).toarray()
        norms = [norm + one.multiply(one).sum(axis=1) for norm, one in zip(norms, counts, strict=True)]
    return products / np.sqrt(np.outer(*norms))

"""A support vector machine on exp(−γ distance), where distances between all pairs of graphs are computed once."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tfgw.baselines.classical import ClassicalBaseline
from tfgw.baselines.kernel_svm import Choice, KernelSVM, choose
from tfgw.datasets import CanonicalOrder
from tfgw.estimators.distance_cache import cached_table, read_table
from tfgw.estimators.distance_table import Comparison, DistanceTable, all_pairs, key_of

GAMMAS = tuple(2.0**power for power in range(-10, 11, 2))
COSTS = tuple(10.0**power for power in range(-3, 5))


@dataclass(kw_only=True, eq=False, repr=False)
class DistanceKernel(ClassicalBaseline):
    """Base class of the kernels on distances. If a parameter has several values, the best ones are selected by
    cross-validation on the training graphs.

    Args:
        C: Cost parameter of the support vector machine: one value or several.
        gamma: γ of exp(−γ distance): one value or several.
        inner_folds: Number of folds of the inner cross-validation, reduced for classes with fewer graphs.
        cache: Folder that stores distances, so that they are reused when the same graphs are compared again. ``None``
            stores none.
        num_threads: Number of solver threads; ``None`` follows :func:`torch.get_num_threads`.
        random_state: Random seed for the folds.
        verbose: Whether to show a progress bar while distances are computed.

    Attributes:
        classes_: Class labels.
        C_: Selected cost parameter.
        gamma_: Selected γ.
        comparison_: Selected distance.
        inner_score_: Accuracy of the selected values in cross-validation; ``None`` if there was nothing to select.
    """

    C: float | Sequence[float] = COSTS
    gamma: float | Sequence[float] = GAMMAS
    inner_folds: int = 10
    cache: str | os.PathLike[str] | None = None
    num_threads: int | None = None
    verbose: bool = False

    def _as_graphs(self, X: Any) -> list[Data]:
        """Put graphs into canonical order, so that isomorphic graphs are equal and compared once."""
        plain = [Data(x=graph.x, edge_index=graph.edge_index) for graph in super()._as_graphs(X)]
        return [CanonicalOrder()(graph) for graph in plain]

    def _comparisons(self, graphs: Sequence[Data]) -> list[Comparison]:
        """Return the distances to select from for these graphs."""
        raise NotImplementedError

    def _is_indefinite(self) -> bool:
        """Whether the kernel may be indefinite; see :class:`KernelSVM`."""
        return False

    def precompute(self, X: Any, cache: str | os.PathLike[str] | None = None) -> None:
        """Compute the distances between all graphs ``X`` and store them in the folder ``cache``. No labels are needed.

        Estimators that are fitted on some of these graphs with the same ``cache``, in this process or another, reuse
        the distances.
        """
        self.cache = self.cache if cache is None else cache
        if self.cache is None:
            raise ValueError("cache: missing; give the folder that stores the distances")
        graphs = self._as_graphs(X)
        for comparison in self._comparisons(graphs):
            self._table(graphs, comparison)

    def decision_function(self, X: Any) -> np.ndarray:
        """Distances to the margins; ``(num_graphs,)`` for two classes."""
        return self.machine_.decision_function(self._kernel(self._read_graphs(X)))

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        keys = [key_of(graph) for graph in graphs]
        comparisons, gammas, costs = self._comparisons(graphs), values("gamma", self.gamma), values("C", self.C)
        tables = [self._table(graphs, comparison) for comparison in comparisons]
        if len(comparisons) * len(gammas) * len(costs) == 1:
            choice = Choice((0, gammas[0]), costs[0], None)
        else:
            kernels = (
                ((number, gamma), np.exp(-gamma * table.between(keys, keys)))
                for number, table in enumerate(tables)
                for gamma in gammas
            )
            choice = choose(
                kernels,
                labels,
                costs=costs,
                folds=self.inner_folds,
                indefinite=self._is_indefinite(),
                seed=self._seed(),
            )
        number, self.gamma_ = choice.kernel
        self.comparison_, self.C_, self.inner_score_ = comparisons[number], choice.cost, choice.score
        self.graphs_ = graphs
        kernel = np.exp(-self.gamma_ * tables[number].between(keys, keys))
        self.machine_ = KernelSVM(self.C_, indefinite=self._is_indefinite()).fit(kernel, labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.machine_.predict(self._kernel(graphs))

    def _kernel(self, graphs: list[Data]) -> np.ndarray:
        """Return exp(−γ distance) between graphs and the training graphs."""
        return np.exp(-self.gamma_ * self._distances(graphs))

    def _distances(self, graphs: list[Data]) -> np.ndarray:
        rows, columns = ([key_of(graph) for graph in part] for part in (graphs, self.graphs_))
        table = read_table(self._folder(self.comparison_), [*rows, *columns])
        if table is not None:
            return table.between(rows, columns)
        return self.comparison_.distances(graphs, self.graphs_, progress_bar=self.verbose)

    def _table(self, graphs: list[Data], comparison: Comparison) -> DistanceTable:
        keys = [key_of(graph) for graph in graphs]
        compute = partial(all_pairs, graphs, comparison, progress_bar=self.verbose)
        return cached_table(self._folder(comparison), keys, compute)

    def _folder(self, comparison: Comparison) -> Path | None:
        return None if self.cache is None else Path(self.cache) / comparison.name


def values(name: str, parameter: float | Sequence[float]) -> list[Any]:
    """Return the value or values of a parameter as a list."""
    found = [parameter] if np.isscalar(parameter) else list(parameter)  # type: ignore[arg-type]
    if not found:
        raise ValueError(f"{name}: the list of values is empty")
    return found

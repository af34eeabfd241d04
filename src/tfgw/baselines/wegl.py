"""Wasserstein embedding for graph learning: the displacement of a reference distribution towards the graph.

Kolouri, Naderializadeh, Rohde, Hoffmann: Wasserstein Embedding for Graph Learning. ICLR 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from tfgw import ot
from tfgw.baselines.classical import ClassicalBaseline
from tfgw.baselines.stacking import graph_of_each_node
from tfgw.train.evaluate import BATCH_SIZE


@dataclass(kw_only=True, eq=False, repr=False)
class WEGL(ClassicalBaseline):
    """Random forest on linear Wasserstein embeddings of nodes whose features were diffused over the graph.

    Features are diffused by the symmetrically normalised adjacency with self-loops, and standardised over the nodes of
    the training graphs. The reference consists of k-means centres of these nodes, as many as the mean number of nodes
    of a training graph. The vector of a graph contains, for each centre, its barycentric projection onto the nodes of
    the graph under optimal transport, minus the centre.

    Args:
        num_layers: Number of diffusion steps.
        concatenate: Whether to use the features of all steps, or of the last step only.
        n_estimators: Number of trees of the forest.
        min_samples_leaf: Minimum number of graphs in a leaf.
        min_samples_split: Minimum number of graphs to split a node.
        class_weight: ``"balanced"`` weights classes inversely to their frequency.
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
        random_state: Random seed for k-means and the forest.

    Attributes:
        classes_: Class labels.
        reference_: The k-means centres, ``(points, features)``.
        forest_: The fitted forest.
    """

    num_layers: int = 4
    concatenate: bool = True
    n_estimators: int = 100
    min_samples_leaf: int = 1
    min_samples_split: int = 2
    class_weight: Literal["balanced"] | None = "balanced"
    num_threads: int | None = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, ``(num_graphs, num_classes)``."""
        return self.forest_.predict_proba(self._embed(self._read_graphs(X)))

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of the graphs, ``(num_graphs, points × features)``."""
        return self._embed(self._read_graphs(X))

    def _fit(self, graphs: list[Data], labels: np.ndarray) -> None:
        if self.num_layers < 0:
            raise ValueError(f"num_layers: must not be negative, got {self.num_layers}")
        seed = self._seed()
        nodes = torch.cat([self._diffused(graph) for graph in graphs]).numpy()
        self.scaler_ = StandardScaler().fit(nodes)
        points = max(1, round(len(nodes) / len(graphs)))
        self.reference_ = _centres(self.scaler_.transform(nodes), points, seed)
        self.forest_ = RandomForestClassifier(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            min_samples_split=self.min_samples_split,
            class_weight=self.class_weight,
            random_state=seed,
        ).fit(self._embed(graphs), labels)

    def _predict(self, graphs: list[Data]) -> np.ndarray:
        return self.forest_.predict(self._embed(graphs))

    def _diffused(self, graph: Data) -> Tensor:
        x = graph.x if graph.x.shape[1] else graph.x.new_ones(len(graph.x), 1)
        return diffused(x, graph.edge_index, self.num_layers, concatenate=self.concatenate)

    def _embed(self, graphs: Sequence[Data]) -> np.ndarray:
        """Compute the vectors in single precision, because they are the largest arrays."""
        batches = [graphs[first : first + BATCH_SIZE] for first in range(0, len(graphs), BATCH_SIZE)]
        return np.concatenate([self._embed_batch(batch).numpy() for batch in batches])

    def _embed_batch(self, graphs: Sequence[Data]) -> Tensor:
        parts = [torch.from_numpy(self.scaler_.transform(self._diffused(graph).numpy())) for graph in graphs]
        x, batch = torch.cat(parts), graph_of_each_node([len(part) for part in parts])
        reference = torch.from_numpy(self.reference_)
        result = ot.wasserstein(
            ot.GraphBatch(x, batch=batch), ot.Templates(reference[None]), num_threads=self.num_threads
        )
        assert result.plans is not None
        plans = result.plans.squeeze(1).split([len(part) for part in parts])
        # Every point of the reference has the weight 1 / points.
        moved = [len(reference) * plan.T @ part - reference for plan, part in zip(plans, parts, strict=True)]
        return torch.stack(moved).flatten(1).float()


def diffused(x: Tensor, edge_index: Tensor, num_layers: int, *, concatenate: bool) -> Tensor:
    """Return the features after each step x ← D^(−½) (A + I) D^(−½) x, where D contains the degrees of A + I."""
    nodes = torch.arange(len(x))
    source, target = torch.cat([edge_index, torch.stack([nodes, nodes])], dim=1)
    scale = degree(target, len(x), dtype=x.dtype).rsqrt()
    levels = [x]
    for _ in range(num_layers):
        messages = (levels[-1] * scale[:, None])[source]
        levels.append(torch.zeros_like(x).index_add_(0, target, messages) * scale[:, None])
    return torch.cat(levels, dim=1) if concatenate else levels[-1]


def _centres(nodes: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return k-means centres, at most as many as there are distinct nodes."""
    count = min(count, len(np.unique(nodes, axis=0)))
    return KMeans(count, n_init=1, random_state=seed).fit(nodes).cluster_centers_

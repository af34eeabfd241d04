"""Graphs as rows of a distance or kernel matrix."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch_geometric.data import Data

from tfgw import ot
from tfgw.estimators.base import GraphEstimator
from tfgw.nn import TFGWConfig
from tfgw.nn.tfgw_pooling import Structure
from tfgw.ot.starts import start_bits
from tfgw.train import Preprocessing


@dataclass(kw_only=True, eq=False, repr=False)
class FGWDistances(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphEstimator):
    """Fused Gromov–Wasserstein distances to all graphs of ``fit``, or a kernel of these distances.

    >>> make_pipeline(FGWDistances(gamma=1.0), SVC(kernel="precomputed")).fit(graphs, labels)
    >>> make_pipeline(FGWDistances(), KNeighborsClassifier(metric="precomputed")).fit(graphs, labels)

    Distances are computed by :func:`tfgw.ot.pairwise`. The matrix between the graphs of ``fit`` is symmetric, with 0
    on the diagonal. exp(−γ FGW) is not positive definite; it can be passed to a support vector machine unchanged, as in
    :class:`tfgw.baselines.FGWKernel`. :func:`tfgw.estimators.as_graphs` describes the supported forms of graphs.

    Args:
        alpha: Trade-off between features (0) and structure (1).
        gamma: γ of the kernel exp(−γ distance). If ``None``, distances are returned.
        structure: Structure matrix of the graphs: ``"adjacency"``, ``"shortest_path"`` or ``"precomputed"``.
        directed: Whether structures may be asymmetric.
        n_starts: Number of starts of the solver per pair; the best result is kept.
        start_kinds: Kinds of starts.
        canonical_order: Whether isomorphic graphs get the same distances.
        standardize: Whether to scale features to mean 0 and variance 1 over the graphs of ``fit``. If ``None``,
            features are scaled unless all are 0 or 1.
        checkpoint: Folder that stores distances. A search over ``gamma`` and parameters of later steps then computes
            them once per fold, and continues after a crash. ``None`` stores none.
        num_threads: Number of solver threads; ``None`` follows :func:`torch.get_num_threads`.
        verbose: Whether to show a progress bar.

    Attributes:
        graphs_: The preprocessed graphs of ``fit``.
        n_features_in_: Number of node features; 0 for graphs without features.
        preprocessing_: Preprocessing of the graphs.
    """

    alpha: float = TFGWConfig.alpha_init
    gamma: float | None = None
    structure: Structure = TFGWConfig.structure
    directed: bool = TFGWConfig.directed
    n_starts: int = TFGWConfig.n_starts
    start_kinds: Sequence[str] = TFGWConfig.start_kinds
    canonical_order: bool = Preprocessing.canonical_order
    standardize: bool | None = None
    checkpoint: str | os.PathLike[str] | None = None
    num_threads: int | None = None
    verbose: bool = False

    graphs_: list[Data] = field(init=False)

    def fit(self, X: Any, y: Any = None) -> "FGWDistances":
        """Store the graphs ``X``; ``y`` is ignored."""
        self._check_parameters()
        dataset = self._stack(self._learn_input(X))
        self.preprocessing_ = self._learn_preprocessing(dataset)
        self.graphs_ = list(self.preprocessing_(dataset))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute distances, or kernel values, to the graphs of ``fit``, ``(num_graphs, num_fitted)``."""
        return self._matrix(list(self._read_input(X)), self.graphs_)

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> np.ndarray:
        """Equivalent to ``fit(X).transform(X)``, in half the time."""
        self.fit(X, y)
        return self._matrix(self.graphs_, None)

    def _matrix(self, graphs: list[Data], others: list[Data] | None) -> np.ndarray:
        if self.checkpoint is not None:
            os.makedirs(self.checkpoint, exist_ok=True)
        distances = ot.pairwise(
            graphs,
            others,
            alpha=self.alpha,
            canonical=False,  # preprocessing does it
            n_starts=self.n_starts,
            start_kinds=self.start_kinds,
            checkpoint=self.checkpoint,
            progress_bar=self.verbose,
            num_threads=self.num_threads,
        ).numpy()
        return distances if self.gamma is None else np.exp(-self.gamma * distances)

    def _check_parameters(self) -> None:
        if self.n_starts < 1:
            raise ValueError(f"n_starts: must be at least 1, got {self.n_starts}")
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha: must lie in [0, 1], got {self.alpha}")
        if self.gamma is not None and not self.gamma > 0:
            raise ValueError(f"gamma: must be positive, got {self.gamma}")
        start_bits(self.start_kinds)

    @property
    def _n_features_out(self) -> int:
        return len(self.graphs_)

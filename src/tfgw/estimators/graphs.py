"""Conversion of a list of graphs of any supported kind to a list of checked ``Data``.

list of Data | networkx | (C, F[, h]) ─ conversion ─▶ x, edge_index, … ─ checks ─▶ list of equal attributes
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.estimators.check_graph import check_graph
from tfgw.estimators.conversion import Attributes, convert, kind_of
from tfgw.nn.tfgw_pooling import STRUCTURES, Structure


def as_graphs(X: Any, *, structure: Structure = "adjacency", directed: bool = False) -> list[Data]:
    """Convert graphs of any supported kind to a list of ``Data`` in double precision.

    All graphs of a list must be of the same kind:

    - PyTorch Geometric ``Data``: ``x``, ``edge_index``, and optionally ``edge_weight``, ``node_weights`` and
      ``structure`` (an n × n matrix, may be flattened). Other attributes, including ``y``, are ignored. Edges without
      ``edge_weight`` are a set: self-loops and duplicate edges are dropped.
    - ``networkx`` graphs: the optional node attribute ``x`` (a number or a vector) and the optional edge attribute
      ``weight``. Self-loops are dropped.
    - Tuples ``(C, F)`` or ``(C, F, h)`` of arrays or tensors: structure matrix (n, n), node features (n, d), node
      weights (n,). C is a 0/1 or weighted adjacency matrix with zero diagonal; with ``structure="precomputed"``, it is
      any matrix.

    Features may be missing (``x`` or F is ``None``) in all graphs; ``x`` then has no columns. The node weights of a
    graph must sum to 1 (default: uniform).

    Args:
        X: The graphs.
        structure: Kind of structure matrix; see :class:`tfgw.nn.TFGWPooling`. ``"precomputed"`` requires tuples, or
            ``Data`` with a ``structure``. For tuples, the non-zero entries of C are then the edges for message passing.
        directed: Whether structures may be asymmetric.

    Returns:
        Graphs with ``x`` (n, d) and ``edge_index``. If any graph has ``edge_weight`` or ``node_weights``, all have
        them. With ``structure="precomputed"``, all have a flattened ``structure``.

    Raises:
        ValueError: If ``X`` is not a list of graphs, or if a graph is invalid; the message then starts with its number.
    """
    if structure not in STRUCTURES:
        raise ValueError(f"structure: must be one of {', '.join(STRUCTURES)}, got {structure!r}")
    _check_list(X)
    graphs: list[Attributes] = []
    for number, graph in enumerate(X):
        try:
            if number and kind_of(graph) != kind_of(X[0]):
                raise ValueError(
                    f"{kind_of(graph)}, but graph 0 is {kind_of(X[0])}; all graphs must be of the same kind"
                )
            converted = convert(graph, structure=structure)
            check_graph(converted, structure=structure, directed=directed)
            columns, expected = converted["x"].shape[1], graphs[0]["x"].shape[1] if graphs else None
            if expected is not None and columns != expected:
                raise ValueError(f"{_features(columns)}, but graph 0 has {_features(expected)}")
        except ValueError as error:
            raise ValueError(f"graph {number}: {error}") from None
        graphs.append(converted)
    _fill(graphs, "edge_weight", lambda graph: graph["x"].new_ones(graph["edge_index"].shape[1]))
    _fill(graphs, "node_weights", lambda graph: graph["x"].new_full((len(graph["x"]),), 1 / len(graph["x"])))
    return [Data(**graph) for graph in graphs]


def check_features(graphs: Sequence[Data], expected: int) -> None:
    """Raise ``ValueError`` if the number of features differs from that in ``fit``."""
    found = graphs[0].x.shape[1]
    if found != expected:
        noun = "no features" if expected == 0 else f"{expected} features per node"
        raise ValueError(f"graph 0: {_features(found)}, but the estimator was fitted on graphs with {noun}")


def as_dataset(graphs: Sequence[Data], y: Tensor | None = None, *, classes: Sequence[Any] = ()) -> GraphDataset:
    """Combine graphs and targets, one row of ``y`` each; nodes without features get the constant feature 1."""
    dataset = GraphDataset.stack(graphs, y, name="graphs", classes=classes)
    if graphs[0].x.shape[1] == 0:
        return dataset.with_node_features(lambda x: x.new_ones(len(x), 1))
    return dataset


def _check_list(X: Any) -> None:
    is_array = isinstance(X, np.ndarray) and (X.dtype != object or X.ndim != 1)
    if is_array or isinstance(X, (Tensor, Data, str, dict)) or not hasattr(X, "__getitem__"):
        raise ValueError(
            "X: expected a list of graphs (PyTorch Geometric Data, networkx graphs, or (C, F) tuples), "
            f"got {type(X).__name__}"
        )
    if not len(X):
        raise ValueError("X: the list of graphs is empty")


def _features(columns: int) -> str:
    return f"{columns} features per node" if columns else "no features"


def _fill(graphs: list[Attributes], key: str, default: Callable[[Attributes], Tensor]) -> None:
    """Add an attribute to the graphs that lack it, because batches need it in all graphs or in none."""
    if any(key in graph for graph in graphs):
        for graph in graphs:
            if key not in graph:
                graph[key] = default(graph)

"""A user's list of graphs, whatever their kind, as one list of checked ``Data``.

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
    """Graphs of any kind that the estimators take, as a list of ``Data`` in double precision.

    The graphs of one list are all of the same kind:

    - PyTorch Geometric ``Data``: ``x``, ``edge_index``, and where present ``edge_weight``, ``node_weights`` and
      ``structure`` (an n × n matrix, also flat). Everything else, ``y`` included, is ignored. Edges without
      ``edge_weight`` are a set: self-loops are dropped, and so is an edge that is listed again.
    - ``networkx`` graphs: the node attribute ``x`` (a number or a vector) and the edge attribute ``weight``
      where there are any. Self-loops are dropped.
    - Tuples ``(C, F)`` or ``(C, F, h)`` of arrays or tensors: structure matrix (n, n), node features (n, d), node
      weights (n,). C is a 0/1 or weighted adjacency matrix without diagonal; with ``structure="precomputed"``
      it is any matrix.

    Features may be missing (``x`` or F is ``None``) in all graphs; ``x`` then has no columns. Node weights sum to
    1 in each graph, and are uniform where they are missing.

    Args:
        X: The graphs.
        structure: What the graphs are compared by; see :class:`tfgw.nn.TFGWPooling`. ``"precomputed"`` needs
            tuples, or ``Data`` with a ``structure``. Of tuples, the entries of C that are not 0 are then the
            edges that message passing sees.
        directed: Whether structures may be asymmetric.

    Returns:
        Graphs with ``x`` (n, d) and ``edge_index``; if any graph needs them, all have ``edge_weight`` or
        ``node_weights``; with ``structure="precomputed"`` all have ``structure``, flat.

    Raises:
        ValueError: If ``X`` is no list of graphs; if a graph is invalid, the message begins with its number.
    """
    if structure not in STRUCTURES:
        raise ValueError(f"structure: must be one of {', '.join(STRUCTURES)}, got {structure!r}")
    _check_list(X)
    graphs: list[Attributes] = []
    for number, graph in enumerate(X):
        try:
            if number and kind_of(graph) != kind_of(X[0]):
                raise ValueError(f"{kind_of(graph)}, but graph 0 is {kind_of(X[0])}; a list takes one kind")
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
    """Raise ``ValueError`` unless nodes have as many features as those an estimator was fitted on."""
    found = graphs[0].x.shape[1]
    if found != expected:
        noun = "no features" if expected == 0 else f"{expected} features per node"
        raise ValueError(f"graph 0: {_features(found)}, but the estimator was fitted on graphs with {noun}")


def as_dataset(graphs: Sequence[Data], y: Tensor | None = None, *, classes: Sequence[Any] = ()) -> GraphDataset:
    """Stack graphs, with one row of ``y`` each; nodes without features get the constant feature 1."""
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
        raise ValueError("X: an empty list of graphs")


def _features(columns: int) -> str:
    return f"{columns} features per node" if columns else "no features"


def _fill(graphs: list[Attributes], key: str, default: Callable[[Attributes], Tensor]) -> None:
    """Batches need an attribute in all graphs or in none."""
    if any(key in graph for graph in graphs):
        for graph in graphs:
            if key not in graph:
                graph[key] = default(graph)

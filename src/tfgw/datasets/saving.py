"""Write graphs in TU format, or to a Parquet file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tfgw.datasets.from_data import Graphs, as_graph_dataset
from tfgw.datasets.graph_dataset import GraphDataset
from tfgw.datasets.graph_parquet import write_graph_parquet
from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.datasets.node_encoding import NodeEncoding


def save(graphs: Graphs | GraphTables, folder: str | os.PathLike[str], *, name: str | None = None) -> Path:
    """Write graphs to text files ``NAME_A.txt``, ``NAME_graph_indicator.txt``, ... that :func:`load` reads.

    The original node labels and attributes, which the ``encoding`` of a dataset encodes as features, are written
    (neither for degrees or constant features), and likewise those of edges. Without an ``encoding``, ``x`` is written
    as node attributes and ``edge_attr`` as edge attributes. Numbers are written with full precision. Edge weights are
    not supported by the format.

    Args:
        graphs: A dataset (only its selected graphs are written), or a list of graphs.
        folder: A folder, which is created if necessary, or a file ``NAME.parquet`` with the graphs as rows
            (:mod:`tfgw.datasets.graph_parquet`).
        name: Name of the dataset (default: name of the folder).

    Returns:
        The folder, or the file.

    Raises:
        ValueError: If the format does not support the graphs.
        FileExistsError: If the folder already contains a dataset of this name.
    """
    folder = Path(folder).expanduser()
    name = name or folder.resolve().name
    tables = graphs if isinstance(graphs, GraphTables) else _tables_of(as_graph_dataset(graphs))
    if folder.suffix == ".parquet":
        if folder.exists():
            raise FileExistsError(f"{folder}: already exists")
        write_graph_parquet(tables, folder)
        return folder
    columns = _columns(tables)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / f"{name}_A.txt").exists():
        raise FileExistsError(f"{folder}: already contains a dataset {name}")
    for table, values in columns.items():
        values = values[:, None] if values.ndim == 1 else values
        # 17 digits are enough to restore every bit of a double.
        text = "%d" if values.dtype.kind in "biu" else "%.17g"
        np.savetxt(folder / f"{name}_{table}.txt", values, fmt=text, delimiter=", ")
    return folder


def _columns(tables: GraphTables) -> dict[str, np.ndarray]:
    """Return the content of each file, one line per row."""
    if tables.edge_weights is not None:
        raise ValueError("edge_weight: TU format does not support edge weights")
    found = {
        "A": (tables.edges + np.repeat(starts(tables.node_counts), tables.edge_counts)).T + 1,
        "graph_indicator": np.repeat(np.arange(len(tables.node_counts)), tables.node_counts) + 1,
        "node_labels": tables.node_labels,
        "node_attributes": tables.node_attributes,
        "edge_labels": tables.edge_labels,
        "edge_attributes": tables.edge_attributes,
    }
    if tables.targets is not None:
        found["graph_attributes" if tables.targets.dtype.kind == "f" else "graph_labels"] = tables.targets
    present = {table: values for table, values in found.items() if values is not None}
    for table, values in present.items():
        if table.endswith("labels") and values.dtype.kind not in "biu":
            raise ValueError(f"{table}: TU format requires integers, found {values.flat[0]!r}")
    return present


def _tables_of(dataset: GraphDataset) -> GraphTables:
    dataset = dataset.compact()
    stacked, slices = dataset.stacked, dataset.slices
    x = stacked["x"].double().numpy()
    labels, attributes = (None, x) if dataset.encoding is None else dataset.encoding.decode(x)
    edge_labels, edge_attributes = _edge_tables(_doubles(stacked.get("edge_attr")), dataset.encoding)
    y = stacked.get("y")
    return GraphTables(
        node_counts=np.diff(slices["x"].numpy()),
        edge_counts=np.diff(slices["edge_index"].numpy()),
        edges=stacked["edge_index"].numpy(),
        node_labels=labels,
        node_attributes=attributes,
        edge_labels=edge_labels,
        edge_attributes=edge_attributes,
        edge_weights=_doubles(stacked.get("edge_weight")),
        targets=None if y is None else _targets(y, dataset.classes),
    )


def _edge_tables(
    edge_attr: np.ndarray | None, encoding: NodeEncoding | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return edge labels and attributes; without an encoding, all are attributes."""
    if edge_attr is None or encoding is None or edge_attr.ndim == 1:
        return None, edge_attr
    edges = encoding.edges
    is_encoded = edge_attr.shape[1] == edges.num_attributes + sum(map(len, edges.vocabulary))
    return edges.decode(edge_attr) if is_encoded else (None, edge_attr)


def _doubles(values: Tensor | None) -> np.ndarray | None:
    return None if values is None else values.double().numpy()


def _targets(y: Tensor, classes: tuple[Any, ...]) -> np.ndarray:
    return np.array(classes)[y.numpy()] if classes else y.double().numpy()

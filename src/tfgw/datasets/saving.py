"""Write graphs in TU format, or as rows of a Parquet file."""

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

    Of a dataset, what its ``encoding`` made features of is written: original node labels, attributes, or neither
    where features are degrees or constant, and likewise labels and attributes of edges. Without an ``encoding``, ``x``
    is written as node attributes and ``edge_attr`` as edge attributes. Numbers keep all their digits. Edges must have
    no weights, for the format has none.

    Args:
        graphs: A dataset (of one with a selection, the graphs that are selected), or a list of graphs.
        folder: A folder, created if need be; or a file ``NAME.parquet``, which holds the graphs as rows
            (:mod:`tfgw.datasets.graph_parquet`).
        name: Name of the dataset; by default that of the folder.

    Returns:
        The folder, or the file.

    Raises:
        ValueError: If the format cannot hold the graphs.
        FileExistsError: If the folder has a dataset of this name.
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
        raise FileExistsError(f"{folder}: has a dataset {name} already")
    for table, values in columns.items():
        values = values[:, None] if values.ndim == 1 else values
        # 17 digits are enough to read back every bit of a double.
        text = "%d" if values.dtype.kind in "biu" else "%.17g"
        np.savetxt(folder / f"{name}_{table}.txt", values, fmt=text, delimiter=", ")
    return folder


def _columns(tables: GraphTables) -> dict[str, np.ndarray]:
    """What each file holds, a line for each row."""
    if tables.edge_weights is not None:
        raise ValueError("edge_weight: TU format has no place for weights of edges")
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
            raise ValueError(f"{table}: TU format takes integers, found {values.flat[0]!r}")
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
    """Edge labels and attributes; what no encoding tells about are attributes."""
    if edge_attr is None or encoding is None or edge_attr.ndim == 1:
        return None, edge_attr
    edges = encoding.edges
    is_encoded = edge_attr.shape[1] == edges.num_attributes + sum(map(len, edges.vocabulary))
    return edges.decode(edge_attr) if is_encoded else (None, edge_attr)


def _doubles(values: Tensor | None) -> np.ndarray | None:
    return None if values is None else values.double().numpy()


def _targets(y: Tensor, classes: tuple[Any, ...]) -> np.ndarray:
    return np.array(classes)[y.numpy()] if classes else y.double().numpy()

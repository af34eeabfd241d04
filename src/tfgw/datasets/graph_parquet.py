"""Graphs as rows of a Parquet file. This format is the fastest to read, because nothing has to be parsed.

=====================  ==============================================================================================
``edge_index``         two lists of node numbers from 0, as in PyTorch Geometric; both directions of an edge
``num_nodes``          needed where nodes have neither labels nor attributes
``node_labels``        a list with an integer or text for each node, or a list of several
``node_attributes``    a list with a number for each node, or a list of several
``target``             a class (integer or text), or a value
``id``                 identifier, an integer or text
=====================  ==============================================================================================
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfgw.datasets.graph_tables import GraphTables, concatenated, starts
from tfgw.datasets.paths import written_whole
from tfgw.datasets.table_file import DAMAGED, column_names, open_parquet

_COLUMNS = ("edge_index", "num_nodes", "node_labels", "node_attributes", "target", "id")
_ROWS_AT_ONCE = 2**14


def is_graph_parquet(path: Path) -> bool:
    """Whether a file contains graphs in this format."""
    return path.suffix == ".parquet" and path.is_file() and "edge_index" in column_names(path)


class GraphParquet:
    """The graphs of a Parquet file."""

    parses_in_python = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem

    def fingerprint(self) -> str:
        """Path, size and time of the file."""
        status = self.path.stat()
        facts = (str(self.path.resolve()), status.st_size, status.st_mtime_ns)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def count(self) -> int:
        """Number of rows."""
        return int(open_parquet(self.path).metadata.num_rows)

    def chunks(self, size: int, *, skip: int = 0) -> Iterator["ParquetChunk"]:
        """Yield the graphs after the first ``skip``, ``size`` at a time, independent of the row groups of the file."""
        if not self.count():
            raise ValueError(f"{self.path}: the file has no graphs")
        first, waiting, rows = skip, [], 0
        for batch in self._batches(skip):
            while len(batch):
                part = batch.slice(0, size - rows)
                waiting.append(part)
                rows, batch = rows + len(part), batch.slice(len(part))
                if rows == size:
                    yield ParquetChunk(str(self.path), first, waiting)
                    first, waiting, rows = first + size, [], 0
        if waiting:
            yield ParquetChunk(str(self.path), first, waiting)
        if first + rows < self.count():
            raise ValueError(f"{self.path}: cannot be read; it is damaged (rows from {first + rows} on are missing)")

    def _batches(self, skip: int) -> Iterator[Any]:
        """Yield batches of rows after the first ``skip``, without reading row groups that are skipped entirely."""
        file = open_parquet(self.path)
        lengths = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        ends = np.cumsum(lengths)
        group = int(np.searchsorted(ends, skip, side="right"))
        left_out = skip - int(ends[group - 1] if group else 0)
        present = [name for name in _COLUMNS if name in file.schema_arrow.names]
        groups = list(range(group, len(lengths)))
        try:
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=present, row_groups=groups) if groups else ():
                passed = min(left_out, len(batch))
                left_out -= passed
                yield batch.slice(passed)
        except DAMAGED as error:
            raise ValueError(f"{self.path}: cannot be read; it is damaged ({_line(error)})") from None


def read_graph_parquet(path: Path) -> GraphTables:
    """Read all graphs of a file."""
    parts = [chunk.tables() for chunk in GraphParquet(path).chunks(_ROWS_AT_ONCE)]
    try:
        return concatenated(parts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class ParquetChunk(NamedTuple):
    """Consecutive rows of a file."""

    label: str
    first: int
    batches: list[Any]

    def tables(self) -> GraphTables:
        """Check the graphs."""
        import pyarrow

        rows = pyarrow.Table.from_batches(self.batches).combine_chunks()
        try:
            return self._tables({name: rows.column(name).combine_chunks() for name in rows.column_names})
        except (pyarrow.ArrowException, TypeError, AttributeError, OverflowError, UnicodeDecodeError) as error:
            raise ValueError(f"{self._where()}: not graphs in the expected format ({_line(error)})") from None

    def _where(self) -> str:
        return f"{self.label}, rows {self.first} to {self.first + sum(map(len, self.batches)) - 1}"

    def _tables(self, columns: dict[str, Any]) -> GraphTables:
        if "edge_index" not in columns:
            raise ValueError(f"{self.label}: no column edge_index")
        for name, column in columns.items():
            if column.null_count:
                raise ValueError(f"{self._where()}: {name} is missing in {column.null_count} of them")
        described: tuple[str, ...] = ("node_labels", "node_attributes")
        tables = {name: _nested(columns[name], name) for name in described if name in columns}
        counts = {name: lengths for name, (lengths, _) in tables.items()}
        if "num_nodes" in columns:
            counts["num_nodes"] = _values(columns["num_nodes"]).astype(np.int64)
        if not counts:
            raise ValueError(f"{self.label}: no column num_nodes, node_labels or node_attributes")
        node_counts = next(iter(counts.values()))
        for name, others in counts.items():
            self._require(others == node_counts, f"{name} and {next(iter(counts))} have different numbers of nodes")
        self._require(node_counts > 0, "the graph has no nodes")
        listed, source, target = self._ends(columns["edge_index"])
        edges, edge_counts = self._distinct(listed, source, target, node_counts)
        return GraphTables(
            node_counts=node_counts,
            edge_counts=edge_counts,
            edges=edges,
            node_labels=self._checked_labels(tables),
            node_attributes=self._checked_numbers(tables, node_counts),
            targets=self._scalars(columns, "target"),
            identifiers=self._scalars(columns, "id"),
        )

    def _require(self, holds: np.ndarray, otherwise: str) -> None:
        """Raise ``ValueError`` for the first graph that violates a condition."""
        if not holds.all():
            raise ValueError(f"{self.label}, row {self.first + int(np.flatnonzero(~holds)[0])}: {otherwise}")

    def _ends(self, column: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the number of listed edges of each graph, and both ends of all edges."""
        lists = column.flatten()
        self._require(_lengths(column) == 2, "edge_index must be two lists")
        lengths = _lengths(lists).reshape(-1, 2)
        self._require(lengths[:, 0] == lengths[:, 1], "the two lists of edge_index differ in length")
        numbers = _values(lists.flatten())
        if numbers.dtype.kind not in "iu" and len(numbers):
            raise ValueError(f"{self.label}: edge_index must contain integers, found {numbers.dtype}")
        is_source = np.repeat(np.tile([True, False], len(lengths)), lengths.ravel())
        numbers = numbers.astype(np.int64)
        return lengths[:, 0], numbers[is_source], numbers[~is_source]

    def _distinct(
        self, listed: np.ndarray, source: np.ndarray, target: np.ndarray, node_counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges (2, E) as a sorted set without self-loops, and their number in each graph."""
        graph, nodes = np.repeat(np.arange(len(listed)), listed), int(node_counts.sum())
        is_inside = (source >= 0) & (target >= 0) & (source < node_counts[graph]) & (target < node_counts[graph])
        inside = np.ones(len(listed), dtype=bool)
        inside[graph[~is_inside]] = False
        self._require(inside, "edge_index contains a node that does not exist")
        first = starts(node_counts)
        kept = source != target
        keys = ((source + first[graph]) * nodes + target + first[graph])[kept]
        if not (keys[1:] > keys[:-1]).all():
            keys = np.unique(keys)
        ends = np.stack(np.divmod(keys, nodes))
        owner = np.repeat(np.arange(len(listed)), node_counts)[ends[0]]
        return ends - first[owner], np.bincount(owner, minlength=len(listed))

    def _checked_labels(self, tables: dict[str, Any]) -> np.ndarray | None:
        if "node_labels" not in tables:
            return None
        labels = tables["node_labels"][1]
        if labels.dtype.kind not in "iuU":
            raise ValueError(f"{self.label}: node_labels must be integers or text, found {labels.dtype}")
        return labels if labels.dtype.kind == "U" else labels.astype(np.int64)

    def _checked_numbers(self, tables: dict[str, Any], node_counts: np.ndarray) -> np.ndarray | None:
        if "node_attributes" not in tables:
            return None
        numbers = tables["node_attributes"][1]
        if numbers.dtype.kind not in "iuf":
            raise ValueError(f"{self.label}: node_attributes must be numbers, found {numbers.dtype}")
        numbers = numbers.astype(np.float64)
        is_finite = np.logical_and.reduceat(np.isfinite(numbers).all(axis=1), starts(node_counts))
        self._require(is_finite, "node_attributes contains a value that is not finite")
        return numbers

    def _scalars(self, columns: dict[str, Any], name: str) -> np.ndarray | None:
        if name not in columns:
            return None
        values = _values(columns[name])
        if values.dtype.kind not in ("iufU" if name == "target" else "iuU"):
            raise ValueError(f"{self.label}: {name} must be {'a number' if name == 'target' else 'an integer'} or text")
        if values.dtype.kind == "f":
            self._require(np.isfinite(values), "the target is not a finite number")
        return values if values.dtype.kind != "u" else values.astype(np.int64)


def write_graph_parquet(tables: GraphTables, path: Path) -> None:
    """Write graphs in this format, which has no columns for edge labels, attributes and weights."""
    import pyarrow
    from pyarrow import parquet

    for name in ("edge_labels", "edge_attributes", "edge_weights"):
        if getattr(tables, name) is not None:
            raise ValueError(f"{name}: not supported in a Parquet file of graphs")
    graphs = len(tables.node_counts)
    owner, which = (
        np.tile(np.repeat(np.arange(graphs), tables.edge_counts), 2),
        np.repeat([0, 1], tables.edges.shape[1]),
    )
    ends = tables.edges.reshape(-1).astype(np.int32)[np.lexsort((which, owner))]
    lists = _as_lists(ends, np.repeat(tables.edge_counts, 2))
    columns = {"edge_index": _as_lists(lists, np.full(graphs, 2)), "num_nodes": pyarrow.array(tables.node_counts)}
    for name in ("node_labels", "node_attributes"):
        if (table := getattr(tables, name)) is not None:
            rows = (
                table[:, 0]
                if table.shape[1] == 1
                else _as_lists(table.reshape(-1), np.full(len(table), table.shape[1]))
            )
            columns[name] = _as_lists(rows, tables.node_counts)
    if tables.targets is not None:
        columns["target"] = pyarrow.array(tables.targets)
    if tables.identifiers is not None:
        columns["id"] = pyarrow.array(tables.identifiers)
    with written_whole(path) as temporary:
        parquet.write_table(pyarrow.table(columns), temporary, row_group_size=_ROWS_AT_ONCE)


def _as_lists(values: Any, lengths: np.ndarray) -> Any:
    import pyarrow

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(values))


def _lengths(lists: Any) -> np.ndarray:
    """Return the length of each list of an array."""
    return np.diff(lists.offsets.to_numpy())


def _nested(column: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of each graph, and all rows, from lists of values or nested lists."""
    import pyarrow

    rows = column.flatten()
    if not (pyarrow.types.is_list(rows.type) or pyarrow.types.is_large_list(rows.type)):
        return _lengths(column), _values(rows)[:, None]
    widths = _lengths(rows)
    if len(np.unique(widths)) != 1:
        raise ValueError(f"{name}: nodes have different numbers of values")
    return _lengths(column), _values(rows.flatten()).reshape(len(rows), -1)


def _values(array: Any) -> np.ndarray:
    """Convert an array of numbers or text."""
    import pyarrow

    if pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type):
        return np.array(array.to_pylist(), dtype=np.str_)
    if not pyarrow.types.is_integer(array.type) and not pyarrow.types.is_floating(array.type):
        raise TypeError(f"expected numbers or text, found {array.type}")
    found: np.ndarray = array.to_numpy(zero_copy_only=False)
    return found


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]

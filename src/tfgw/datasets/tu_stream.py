"""Read a dataset in TU format in chunks: its files are read in parallel, because they list nodes and edges graph by
graph.

A first pass checks the files, so that errors are raised before there are any results. Files whose edges are in another
order are read as a whole.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.datasets.numbers import Block, read_blocks
from tfgw.datasets.tu_files import TableFiles
from tfgw.datasets.tu_format import read_tables

_BLOCK_BYTES = 2**20
_CHECKED_AT_ONCE = 4096
_OPTIONAL = {
    "node_labels": np.int64,
    "node_attributes": np.float64,
    "edge_labels": np.int64,
    "edge_attributes": np.float64,
}


class TablesChunk(NamedTuple):
    """Graphs that are already parsed."""

    first: int
    parsed: GraphTables

    def tables(self) -> GraphTables:
        """The graphs."""
        return self.parsed


class TablesSource:
    """Graphs that are already in memory."""

    parses_in_python = False

    def __init__(self, name: str, tables: GraphTables) -> None:
        self.name, self._tables = name, tables

    def fingerprint(self) -> str:
        """Return a fingerprint of the content."""
        digest = hashlib.sha256()
        for field in fields(self._tables):
            digest.update(f"{field.name} {getattr(self._tables, field.name)!r}".encode())
            values = getattr(self._tables, field.name)
            digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    def count(self) -> int:
        """Number of graphs."""
        return len(self._tables.node_counts)

    def chunks(self, size: int, *, skip: int = 0) -> Iterator[TablesChunk]:
        """The graphs after the first ``skip``, ``size`` at a time."""
        for first in range(skip, self.count(), size):
            yield TablesChunk(first, self._tables.part(first, min(first + size, self.count())))


class TuSource:
    """A dataset in TU format."""

    parses_in_python = False

    def __init__(self, files: TableFiles) -> None:
        self.files = files
        self.name = files.name

    def fingerprint(self) -> str:
        """Return the fingerprint of the files."""
        return self.files.fingerprint()

    def count(self) -> int:
        """Number of graphs."""
        return self._steps if self._whole is None else self._whole.count()

    def chunks(self, size: int, *, skip: int = 0) -> Iterator[TablesChunk]:
        """The graphs after the first ``skip``, ``size`` at a time."""
        if self._whole is None:
            first = 0
            for tables in _in_step(self.files, size):
                if first >= skip:
                    yield TablesChunk(first, tables)
                elif first + len(tables.node_counts) > skip:
                    yield TablesChunk(skip, tables.part(skip - first, len(tables.node_counts)))
                first += len(tables.node_counts)
            return
        yield from self._whole.chunks(size, skip=skip)

    @cached_property
    def _steps(self) -> int:
        """Return the number of graphs if the files can be read in parallel and have no errors, else 0."""
        try:
            return sum(len(tables.node_counts) for tables in _in_step(self.files, _CHECKED_AT_ONCE))
        except ValueError:
            return 0

    @cached_property
    def _whole(self) -> TablesSource | None:
        """Return all graphs if the files cannot be read in parallel; raises the errors of the files."""
        return None if self._steps else TablesSource(self.name, read_tables(self.files))


class _OutOfStepError(ValueError):
    """The files do not list the graphs one after the other, or have an error."""


class _Rows:
    """Buffered rows of a table."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self.waiting: np.ndarray | None = None

    def read_more(self) -> bool:
        """Read a block; return False at the end of the table."""
        block = next(self._blocks, None)
        if block is not None:
            before = [] if self.waiting is None else [self.waiting]
            self.waiting = np.concatenate([*before, block.values])
        return block is not None

    def take(self, count: int) -> np.ndarray:
        """Remove the next rows from the buffer and return them."""
        while (0 if self.waiting is None else len(self.waiting)) < count:
            if not self.read_more():
                raise _OutOfStepError
        if self.waiting is None:
            return np.empty((0, 0))
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def take_until_above(self, largest: int) -> np.ndarray:
        """Remove and return the rows before the first with a value greater than ``largest``."""
        seen = 0
        while True:
            waiting = np.empty((0, 1)) if self.waiting is None else self.waiting[seen:]
            above = np.flatnonzero((waiting > largest).any(axis=1))
            if above.size:
                return self.take(seen + int(above[0]))
            seen += len(waiting)
            if not self.read_more():
                return self.take(seen)

    def is_at_end(self) -> bool:
        """Whether all rows have been taken."""
        return (self.waiting is None or not len(self.waiting)) and not self.read_more()


def _in_step(files: TableFiles, size: int) -> Iterator[GraphTables]:
    """Tables of ``size`` graphs each."""
    with ExitStack() as opened:

        def rows(table: str, dtype: type, columns: int | None = None) -> _Rows:
            stream, label = opened.enter_context(files.open(table)), files.label(table)
            options = {"block_bytes": _BLOCK_BYTES, "kept": False}
            return _Rows(read_blocks(stream, dtype=dtype, columns=columns, label=label, **options))  # type: ignore[arg-type]

        if "A" not in files or "graph_indicator" not in files:
            raise _OutOfStepError
        indicator, edges = rows("graph_indicator", np.int64, 1), rows("A", np.int64, 2)
        optional = {table: rows(table, dtype) for table, dtype in _OPTIONAL.items() if table in files}
        target_table = next((table for table in ("graph_labels", "graph_attributes") if table in files), None)
        targets = None
        if target_table is not None:
            is_label = target_table == "graph_labels"
            targets = rows(target_table, np.int64 if is_label else np.float64, 1 if is_label else None)
        graphs = nodes = 0
        while len(graph_of_node := indicator.take_until_above(graphs + size)):
            node_counts = _node_counts(graph_of_node[:, 0], graphs)
            listed = edges.take_until_above(nodes + len(graph_of_node)) - 1 - nodes
            ends, edge_counts, lines = _distinct(listed, node_counts)
            about_nodes = {name: table.take(len(graph_of_node)) for name, table in optional.items() if "node" in name}
            about_edges = {name: table.take(len(listed))[lines] for name, table in optional.items() if "edge" in name}
            known = None if targets is None else targets.take(len(node_counts))
            if known is not None and target_table == "graph_labels":
                known = known[:, 0]
            yield GraphTables(
                node_counts=node_counts,
                edge_counts=edge_counts,
                edges=ends,
                targets=known,
                **about_nodes,
                **about_edges,
            )
            graphs, nodes = graphs + len(node_counts), nodes + len(graph_of_node)
        rest = [edges, *optional.values(), *([] if targets is None else [targets])]
        if not graphs or not all(table.is_at_end() for table in rest):
            raise _OutOfStepError


def _node_counts(graph_of_node: np.ndarray, before: int) -> np.ndarray:
    """Return the number of nodes of each graph; graphs must be in order."""
    step = np.diff(graph_of_node, prepend=before)
    if step[0] != 1 or ((step != 0) & (step != 1)).any():
        raise _OutOfStepError
    return np.bincount(graph_of_node - before - 1)


def _distinct(listed: np.ndarray, node_counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct edges (2, E) without self-loops, numbered within graphs, their number per graph, and lines."""
    nodes = int(node_counts.sum())
    if (listed < 0).any():
        raise _OutOfStepError
    source, target = listed.reshape(-1, 2).T
    graph = np.repeat(np.arange(len(node_counts)), node_counts)
    # Require order within the chunk too, so that success does not depend on the chunk size.
    if (graph[source] != graph[target]).any() or (np.diff(graph[source]) < 0).any():
        raise _OutOfStepError
    kept = np.flatnonzero(source != target)
    keys, first = np.unique(source[kept] * nodes + target[kept], return_index=True)
    ends = np.stack(np.divmod(keys, nodes))
    owner = graph[ends[0]]
    local = (ends - starts(node_counts)[owner]).astype(np.int32)
    return local, np.bincount(owner, minlength=len(node_counts)), kept[first]

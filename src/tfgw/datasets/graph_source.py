"""Files of graphs that are read in chunks, with bounded memory."""

from collections.abc import Iterator
from typing import Protocol

from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.molecule_table import MoleculeRows


class Chunk(Protocol):
    """Unparsed consecutive graphs of a source, which are parsed in other threads or processes."""

    @property
    def first(self) -> int:
        """Position of the first graph in the source, from 0."""

    def tables(self) -> GraphTables:
        """Parse and check the graphs.

        Raises:
            ValueError: If a graph is invalid; the message names the file and the position.
        """


class GraphSource(Protocol):
    """A file, or several that belong together, with any number of graphs."""

    name: str
    parses_in_python: bool
    """Whether chunks are parsed by Python code, which holds the global interpreter lock."""

    def fingerprint(self) -> str:
        """Return a fingerprint that changes with the files."""

    def count(self) -> int | None:
        """Return the number of graphs, or of rows of a table; ``None`` if it is expensive to determine."""

    def chunks(self, size: int, *, skip: int = 0) -> Iterator[Chunk] | Iterator[MoleculeRows]:
        """Yield the graphs (or rows of a table) after the first ``skip``, in order, ``size`` at a time."""

"""Files of graphs that are read in chunks, so that memory does not grow with the file."""

from collections.abc import Iterator
from typing import Protocol

from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.molecule_table import MoleculeRows


class Chunk(Protocol):
    """Consecutive graphs of a source as they are in the file. Other threads or processes make tables of them."""

    @property
    def first(self) -> int:
        """Position of its first graph in the source, from 0."""

    def tables(self) -> GraphTables:
        """Parse and check its graphs.

        Raises:
            ValueError: With the name of the file and the place in it.
        """


class GraphSource(Protocol):
    """A file, or several that belong together, with any number of graphs."""

    name: str
    parses_in_python: bool
    """Whether chunks are parsed by Python code, which only one thread of a process can run at a time."""

    def fingerprint(self) -> str:
        """Changes when the files change."""

    def count(self) -> int | None:
        """Number of graphs, or of rows of a table; ``None`` where that cannot be told without much work."""

    def chunks(self, size: int, *, skip: int = 0) -> Iterator[Chunk] | Iterator[MoleculeRows]:
        """What comes after the first ``skip`` graphs (or rows of a table), in order, ``size`` at a time."""

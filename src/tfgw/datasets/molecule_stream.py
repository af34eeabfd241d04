"""A table of molecules, read in chunks of rows."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tfgw.datasets.molecule_table import MoleculeRows, TableColumns, read_chunks
from tfgw.datasets.table_file import count_rows


class MoleculeSource:
    """The molecules of a CSV or Parquet file; rows need no target."""

    parses_in_python = True

    def __init__(self, path: Path, columns: TableColumns) -> None:
        self.path, self.columns = path, columns
        self.name = path.stem

    def fingerprint(self) -> str:
        """Path, size and time of the file, and the names of the columns."""
        status = self.path.stat()
        facts = (str(self.path.resolve()), status.st_size, status.st_mtime_ns, repr(self.columns))
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def count(self) -> int | None:
        """Return the number of rows, or ``None`` if the file does not contain it."""
        return count_rows(self.path)

    def chunks(self, size: int, *, skip: int = 0) -> Iterator[MoleculeRows]:
        """The rows after the first ``skip``, ``size`` at a time."""
        return read_chunks(self.path, self.columns, size=size, labelled=False, skip=skip)

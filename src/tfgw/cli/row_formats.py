"""Formats of files of rows, in a form to which rows can be appended, and from that the finished file."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tfgw.datasets.paths import written_whole
from tfgw.train.answers import Columns

_ROWS_AT_ONCE = 2**16


def type_of(values: Sequence[Any]) -> type:
    """The type of a column that holds these values and ``None``."""
    return type(next((value for value in values if value is not None), ""))


class RowFormat:
    """Turns columns into bytes, and appended bytes into a finished file; for text, they are the file.

    Args:
        types: Names of columns and of the types of their values.
    """

    def __init__(self, types: dict[str, str]) -> None:
        self.types = types

    @staticmethod
    def check() -> None:
        """Raise ``ImportError`` if a package is missing."""

    def header(self) -> bytes:
        """What comes before the rows."""
        return b""

    def rows(self, columns: Columns) -> bytes:
        """A row for each graph."""
        raise NotImplementedError

    def finish(self, partial: Path, path: Path) -> None:
        """Make the finished file; the other may be gone afterwards."""
        partial.replace(path)


class CsvRows(RowFormat):
    """Comma-separated values with a header."""

    def header(self) -> bytes:
        return _csv([list(self.types)])

    def rows(self, columns: Columns) -> bytes:
        return _csv(zip(*columns.values(), strict=True))


class JsonRows(RowFormat):
    """An object on each line."""

    def rows(self, columns: Columns) -> bytes:
        rows = zip(*columns.values(), strict=True)
        return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


class ParquetRows(RowFormat):
    """Parquet, which cannot be appended to: rows are appended as a stream of Arrow's and rewritten in the end."""

    @staticmethod
    def check() -> None:
        _pyarrow()

    def header(self) -> bytes:
        return bytes(self._schema().serialize())

    def rows(self, columns: Columns) -> bytes:
        pyarrow = _pyarrow()
        try:
            return bytes(pyarrow.RecordBatch.from_pydict(columns, schema=self._schema()).serialize())
        except pyarrow.ArrowException as error:
            text = " ".join(str(error).split())
            raise ValueError(f"not all values of a column have the same type, which Parquet needs ({text})") from None

    def finish(self, partial: Path, path: Path) -> None:
        pyarrow = _pyarrow()
        with (
            written_whole(path) as temporary,
            pyarrow.OSFile(str(partial)) as stream,
            pyarrow.parquet.ParquetWriter(temporary, self._schema()) as writer,
        ):
            for batches in self._groups(stream):
                writer.write_table(pyarrow.Table.from_batches(batches, schema=self._schema()))

    def _groups(self, stream: Any) -> Iterator[list[Any]]:
        """Batches of rows, so many at a time that the file has few row groups."""
        if not stream.size():
            return
        group: list[Any] = []
        for batch in _pyarrow().ipc.open_stream(stream):
            group.append(batch)
            if sum(map(len, group)) >= _ROWS_AT_ONCE:
                yield group
                group = []
        if group:
            yield group

    def _schema(self) -> Any:
        pyarrow = _pyarrow()
        types = {
            "bool": pyarrow.bool_(),
            "int": pyarrow.int64(),
            "float": pyarrow.float64(),
            "str": pyarrow.string(),
        }
        return pyarrow.schema([(name, types[kind]) for name, kind in self.types.items()])


FORMATS: dict[str, type[RowFormat]] = {
    ".csv": CsvRows,
    ".jsonl": JsonRows,
    ".parquet": ParquetRows,
}


def _csv(rows: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _pyarrow() -> Any:
    try:
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'tfgw[parquet]'") from error
    return pyarrow

"""Formats of output files: rows are appended to a partial file, which is then converted to the finished file."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tfgw.datasets.paths import written_whole
from tfgw.train.output_columns import Columns

_ROWS_AT_ONCE = 2**16


def type_of(values: Sequence[Any]) -> type:
    """Return the type of a column of these values; ``None`` is a missing value."""
    return type(next((value for value in values if value is not None), ""))


class RowFormat:
    """Converts columns to bytes to append, and the appended bytes to the finished file (for text formats, the same
    bytes).

    Args:
        types: Names of the columns and of their types.
    """

    def __init__(self, types: dict[str, str]) -> None:
        self.types = types

    @staticmethod
    def check() -> None:
        """Raise ``ImportError`` if a package is missing."""

    def header(self) -> bytes:
        """Return the bytes before the first row."""
        return b""

    def rows(self, columns: Columns) -> bytes:
        """Return the bytes of a row for each graph."""
        raise NotImplementedError

    def finish(self, partial: Path, path: Path) -> None:
        """Write the finished file; this may move or delete the partial file."""
        partial.replace(path)


class CsvRows(RowFormat):
    """Comma-separated values with a header."""

    def header(self) -> bytes:
        return _csv([list(self.types)])

    def rows(self, columns: Columns) -> bytes:
        return _csv(zip(*columns.values(), strict=True))


class JsonRows(RowFormat):
    """JSON Lines: one object per line."""

    def rows(self, columns: Columns) -> bytes:
        rows = zip(*columns.values(), strict=True)
        return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


class ParquetRows(RowFormat):
    """Parquet. Rows are appended to an Arrow stream, which is converted at the end, as Parquet does not allow
    appending."""

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
            raise ValueError(
                f"the values of a column have different types, which Parquet does not support ({text})"
            ) from None

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
        """Combine batches of rows, so that the file has few row groups."""
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

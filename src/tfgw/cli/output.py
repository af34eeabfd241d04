"""What a command gives back: an answer for machines and people, plain-text tables, files of rows."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Columns = Mapping[str, type]
"""Names of columns and the type of their values: ``bool``, ``int``, ``float`` or ``str``. A value may be ``None``."""


class Answer(NamedTuple):
    """The same answer for machines and for people, and the exit code."""

    data: Any
    text: str
    code: int = 0


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows with their columns aligned; numbers to the right, the rest to the left."""
    shown = [[_show(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    for row, cells in zip(rows, shown, strict=True):
        aligned = [
            text.rjust(width) if isinstance(cell, int | float) else text.ljust(width)
            for cell, text, width in zip(row, cells, widths, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def type_of(values: Sequence[Any]) -> type:
    """The type of a column that holds these values and ``None``."""
    return type(next((value for value in values if value is not None), ""))


class RowWriter(Protocol):
    """A file of rows that is being written."""

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Append rows, each with a value for every column."""


def check_output(path: Path | None) -> None:
    """Raise an error if ``--output`` names a file that cannot be written; for before the work is done."""
    if path is None:
        return
    if path.suffix not in _FORMATS:
        raise ValueError(f"--output {path}: its name must end in {', '.join(_FORMATS)}, which says the format")
    if path.exists():
        raise FileExistsError(f"--output {path}: is there already")
    if path.suffix == ".parquet":
        _pyarrow()


@contextmanager
def open_rows(path: Path, columns: Columns) -> Iterator[RowWriter]:
    """Write a new file of rows, in chunks, in the format that its suffix names; one that is there is left alone.

    >>> with open_rows(Path("answers.parquet"), {"graph": int, "label": str}) as file:
    ...     file.write([(0, "ring"), (1, None)])
    """
    check_output(path)
    with _FORMATS[path.suffix](path, columns) as writer:
        yield writer


class _CsvRows:
    def __init__(self, stream: Any, columns: Columns) -> None:
        self._writer = csv.writer(stream)
        self._writer.writerow(columns)

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        self._writer.writerows(rows)


class _JsonRows:
    def __init__(self, stream: Any, columns: Columns) -> None:
        self._stream, self._names = stream, list(columns)

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._stream.write(json.dumps(dict(zip(self._names, row, strict=True))) + "\n")


class _ParquetRows:
    def __init__(self, path: Path, columns: Columns) -> None:
        pyarrow = _pyarrow()
        types = {
            bool: pyarrow.bool_(),
            int: pyarrow.int64(),
            float: pyarrow.float64(),
            str: pyarrow.string(),
        }
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema)

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        entries = [dict(zip(self._schema.names, row, strict=True)) for row in rows]
        self._writer.write_table(_pyarrow().Table.from_pylist(entries, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


@contextmanager
def _text(path: Path, columns: Columns, kind: type[_CsvRows] | type[_JsonRows]) -> Iterator[RowWriter]:
    with path.open("x", encoding="utf-8", newline="") as stream:
        yield kind(stream, columns)


@contextmanager
def _parquet(path: Path, columns: Columns) -> Iterator[RowWriter]:
    writer = _ParquetRows(path, columns)
    try:
        yield writer
    finally:
        writer.close()  # without it the rows so far could not be read


_FORMATS: dict[str, Callable[[Path, Columns], AbstractContextManager[RowWriter]]] = {
    ".csv": partial(_text, kind=_CsvRows),
    ".jsonl": partial(_text, kind=_JsonRows),
    ".parquet": _parquet,
}


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'tfgw[parquet]'") from error
    return pyarrow


def _show(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)

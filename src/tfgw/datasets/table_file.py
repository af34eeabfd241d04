"""Read the rows of a CSV or Parquet file, with columns selected by name."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SUFFIXES = (".csv", ".parquet")
MAX_FIELD = 2**24
"""Maximum number of characters of a field in a CSV file."""

_ROWS_AT_ONCE = 4096

Row = tuple[Any, ...]

DAMAGED = (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, NotImplementedError, MemoryError)
"""Types of errors that pyarrow raises for damaged Parquet files."""


def column_names(path: Path) -> list[str]:
    """Return the column names of a file."""
    return _csv_header(path) if path.suffix == ".csv" else open_parquet(path).schema_arrow.names


def count_rows(path: Path) -> int | None:
    """Return the number of rows of a Parquet file, or ``None`` for a CSV file."""
    return None if path.suffix == ".csv" else int(open_parquet(path).metadata.num_rows)


def read_rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    """Yield the values of the named columns in each row; ``None`` if a field is empty or NaN.

    Fields of a CSV file are text with surrounding spaces removed.

    Raises:
        ValueError: If the file cannot be read, or lacks a column; the message names the file and the row.
    """
    found = column_names(path)
    for name in names:
        if found.count(name) != 1:
            noun = "no column" if name not in found else "several columns"
            raise ValueError(f"{path}: {noun} {name!r}; it has {', '.join(map(repr, found[:20]))}")
    yield from _csv_rows(path, found, names) if path.suffix == ".csv" else _parquet_rows(path, names)


def _csv_header(path: Path) -> list[str]:
    for row in _csv_records(path):
        return [name.strip() for name in row]
    raise ValueError(f"{path}: the file is empty")


def _csv_rows(path: Path, header: list[str], names: Sequence[str]) -> Iterator[Row]:
    places = [header.index(name) for name in names]
    records = _csv_records(path)
    next(records)
    number = 0
    for record in records:
        if not record:  # a blank line
            continue
        if len(record) != len(header):
            raise ValueError(f"{path}, row {number}: has {len(record)} fields, but the header has {len(header)}")
        yield tuple(record[place].strip() or None for place in places)
        number += 1


def _csv_records(path: Path) -> Iterator[list[str]]:
    before = csv.field_size_limit(MAX_FIELD)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from csv.reader(stream, strict=True)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"{path}: not a readable CSV file ({error})") from None
    finally:
        csv.field_size_limit(before)


def _parquet_rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    file = open_parquet(path)
    try:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(names)):
            columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in names]
            yield from (tuple(map(_value, row)) for row in zip(*columns, strict=True))
    except DAMAGED as error:
        raise ValueError(f"{path}: the file cannot be read; it is damaged ({_line(error)})") from None


def _value(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return (value.strip() or None) if isinstance(value, str) else value


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; requires the extra ``parquet``."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'tfgw[parquet]'") from error
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        return pyarrow.parquet.ParquetFile(path)
    except DAMAGED as error:
        raise ValueError(f"{path}: not a readable Parquet file ({_line(error)})") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]

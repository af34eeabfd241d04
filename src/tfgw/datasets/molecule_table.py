"""Tables of molecules: CSV or Parquet files with a column of SMILES, and optionally of targets and identifiers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.molecules import Molecule, molecule_tables, parse_smiles
from tfgw.datasets.table_file import Row, column_names, read_rows

_SHOWN = 3
"""Maximum number of skipped rows to list."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Column names of a table of molecules, which are stored in model files.

    Args:
        smiles: Column of SMILES strings.
        target: Column of targets. Integers or text are classes; if a number has a fraction, all are values.
        identifier: Column of identifiers (default: the row number, from 0 after the header).
        values: Whether integers are values to predict rather than classes.
    """

    smiles: str
    target: str | None = None
    identifier: str | None = None
    values: bool = False


class SkippedRows(NamedTuple):
    """Counts of the skipped rows of a table."""

    of_rows: int
    unreadable: int
    reasons: tuple[str, ...]  # for the first few unreadable rows
    without_target: int

    def __str__(self) -> str:
        parts = []
        if self.unreadable:
            more = "; ..." if self.unreadable > len(self.reasons) else ""
            noun = "rows cannot be read and is" if self.unreadable == 1 else "rows cannot be read and are"
            parts.append(f"{self.unreadable} of {self.of_rows} {noun} skipped: {'; '.join(self.reasons)}{more}")
        if self.without_target:
            noun = "rows has no target and is" if self.without_target == 1 else "rows have no target and are"
            parts.append(f"{self.without_target} of {self.of_rows} {noun} skipped")
        return ", and ".join(parts)

    def merged(self, other: "SkippedRows") -> "SkippedRows":
        """Merge the counts of two parts of a table."""
        return SkippedRows(
            self.of_rows + other.of_rows,
            self.unreadable + other.unreadable,
            (*self.reasons, *other.reasons)[:_SHOWN],
            self.without_target + other.without_target,
        )


class MoleculeTable(NamedTuple):
    """The readable molecules of a table (``None`` if there are none), and the skipped rows."""

    tables: GraphTables | None
    skipped: SkippedRows


class _Row(NamedTuple):
    number: int  # from 0
    molecule: Molecule
    target: Any
    identifier: Any


class MoleculeRows(NamedTuple):
    """Unparsed rows of a table, starting with row number ``first``."""

    path: Path
    columns: TableColumns
    present: tuple[str, ...]  # kind of each value in a row: "smiles", "target", "id"
    first: int
    rows: Sequence[Row]

    def parse(self, *, labelled: bool = False) -> MoleculeTable:
        """Convert the molecules to graphs; rows that cannot be read are skipped.

        Args:
            labelled: Whether to skip rows without a target, too.

        Raises:
            ValueError: If the targets mix numbers and text.
        """
        found: list[_Row] = []
        reasons: list[str] = []
        without_target = 0
        for number, values in enumerate(self.rows, start=self.first):
            fields = dict(zip(self.present, values, strict=True))
            if labelled and fields["target"] is None:
                without_target += 1
                continue
            try:
                molecule = parse_smiles(fields["smiles"])
            except ValueError as error:
                reasons.append(f"row {number}: {error}")
                continue
            found.append(_Row(number, molecule, fields.get("target"), fields.get("id", number)))
        skipped = SkippedRows(len(self.rows), len(reasons), tuple(reasons[:_SHOWN]), without_target)
        if not found:
            return MoleculeTable(None, skipped)
        where = f"{self.path}, column {self.columns.target!r}"
        tables = molecule_tables(
            [row.molecule for row in found],
            targets=_targets(found, self.columns, where=where) if "target" in self.present else None,
            identifiers=_identifiers([row.identifier for row in found]),
        )
        return MoleculeTable(tables, skipped)


def read_chunks(
    path: Path, columns: TableColumns, *, size: int | None, labelled: bool, skip: int = 0
) -> Iterator[MoleculeRows]:
    """Yield the rows of a table after the first ``skip``, ``size`` at a time (``None``: all at once)."""
    has_target = _has_target(path, columns, labelled=labelled)
    named = {"smiles": columns.smiles, "target": columns.target if has_target else None, "id": columns.identifier}
    present = {what: name for what, name in named.items() if name is not None}
    rows = islice(read_rows(path, list(present.values())), skip, None)
    first = skip
    while chosen := list(islice(rows, size)):
        yield MoleculeRows(path, columns, tuple(present), first, chosen)
        first += len(chosen)
    if not first:
        raise ValueError(f"{path}: the table has no rows")


def read_molecules(path: Path, columns: TableColumns, *, labelled: bool) -> tuple[GraphTables, SkippedRows | None]:
    """Read a table; rows whose molecule cannot be read are skipped.

    Args:
        path: A CSV or Parquet file.
        columns: Columns of molecules, targets and identifiers.
        labelled: Whether to skip rows without a target. Otherwise their target is masked, and the column of targets may
            be missing.

    Raises:
        ValueError: If the file or all of its rows cannot be read, or if the targets mix numbers and text.
    """
    (chunk,) = read_chunks(path, columns, size=None, labelled=labelled)
    tables, skipped = chunk.parse(labelled=labelled)
    if tables is None:
        raise ValueError(f"{path}: no molecules; {skipped}")
    return tables, skipped if skipped.unreadable or skipped.without_target else None


def _has_target(path: Path, columns: TableColumns, *, labelled: bool) -> bool:
    if labelled and columns.target is None:
        raise ValueError(f"{path}: specify the column of targets (target=, --target)")
    return labelled or columns.target in column_names(path)


def _targets(rows: list[_Row], columns: TableColumns, *, where: str) -> np.ndarray:
    """Return the targets of the rows; missing targets are masked."""
    numbers = {row.number: _number(row.target) for row in rows if row.target is not None}
    texts = [row for row, number in numbers.items() if number is None]
    if texts and len(texts) < len(numbers):
        other = next(row for row, number in numbers.items() if number is not None)
        raise ValueError(f"{where}: row {texts[0]} is text and row {other} is a number; targets must not mix both")
    mask = [row.target is None for row in rows]
    if texts:
        return np.ma.array([str(row.target or "") for row in rows], mask=mask, dtype=np.str_)
    for number, value in numbers.items():
        if value is None or not math.isfinite(value) or abs(value) >= 2**63:
            raise ValueError(f"{where}: row {number} is {value}, not a finite number of at most 64 bits")
    are_classes = not columns.values and all(type(value) is int for value in numbers.values())
    found = [numbers.get(row.number, 0) for row in rows]
    return np.ma.array(found, mask=mask, dtype=np.int64 if are_classes else np.float64)


def _number(value: Any) -> int | float | None:
    """Convert a field to a number, or ``None`` if it is text. Values such as 1.0 become integers."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _identifiers(values: list[Any]) -> np.ndarray:
    """Return identifiers as integers, or else as text; missing identifiers are empty strings."""
    if all(type(value) is int and -(2**63) <= value < 2**63 for value in values):
        return np.array(values)
    return np.array(["" if value is None else str(value) for value in values], dtype=np.str_)

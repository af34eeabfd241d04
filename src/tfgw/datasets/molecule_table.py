"""A table of molecules: a CSV or Parquet file with a column of SMILES, and perhaps of targets and identifiers."""

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
"""Skipped rows that a report names."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Names of the columns of a table; model files keep them.

    Args:
        smiles: The molecules.
        target: What is predicted: integers or text are classes, numbers of which one has a fraction are values.
        identifier: What each row is called; ``None``: its number, from 0 in the first row after the header.
        values: Whether whole numbers are values to predict rather than classes.
    """

    smiles: str
    target: str | None = None
    identifier: str | None = None
    values: bool = False


class SkippedRows(NamedTuple):
    """Rows of a table that are not among the graphs."""

    of_rows: int
    unreadable: int
    reasons: tuple[str, ...]  # of the first few that could not be read
    without_target: int

    def __str__(self) -> str:
        parts = []
        if self.unreadable:
            more = "; ..." if self.unreadable > len(self.reasons) else ""
            noun = "row cannot be read and is" if self.unreadable == 1 else "rows cannot be read and are"
            parts.append(f"{self.unreadable} of {self.of_rows} {noun} left out: {'; '.join(self.reasons)}{more}")
        if self.without_target:
            noun = "row has no target and is" if self.without_target == 1 else "rows have no target and are"
            parts.append(f"{self.without_target} of {self.of_rows} {noun} left out")
        return ", and ".join(parts)

    def merged(self, other: "SkippedRows") -> "SkippedRows":
        """Those of two parts of a table."""
        return SkippedRows(
            self.of_rows + other.of_rows,
            self.unreadable + other.unreadable,
            (*self.reasons, *other.reasons)[:_SHOWN],
            self.without_target + other.without_target,
        )


class MoleculeTable(NamedTuple):
    """The molecules of a table that could be read, ``None`` if there are none, and what is known of the others."""

    tables: GraphTables | None
    skipped: SkippedRows


class _Row(NamedTuple):
    number: int  # from 0
    molecule: Molecule
    target: Any
    identifier: Any


class MoleculeRows(NamedTuple):
    """Rows of a table as they are in the file, from the row with the number ``first``."""

    path: Path
    columns: TableColumns
    present: tuple[str, ...]  # what each value of a row is: "smiles", "target", "id"
    first: int
    rows: Sequence[Row]

    def parse(self, *, labelled: bool = False) -> MoleculeTable:
        """Make graphs of the molecules; rows that cannot be read are left out.

        Args:
            labelled: Whether rows without a target are left out, too.

        Raises:
            ValueError: If the targets are both numbers and text.
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
    """The rows of a table after the first ``skip``, ``size`` at a time; ``None``: all at once."""
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
    """Read a table; rows whose molecule cannot be read are left out.

    Args:
        path: A CSV or Parquet file.
        columns: Where molecules, targets and identifiers are.
        labelled: Whether rows without a target are left out. Otherwise they stay, their target masked, and the column
            of targets may be missing.

    Raises:
        ValueError: If the file cannot be read, no row can, or the targets are both numbers and text.
    """
    (chunk,) = read_chunks(path, columns, size=None, labelled=labelled)
    tables, skipped = chunk.parse(labelled=labelled)
    if tables is None:
        raise ValueError(f"{path}: no molecules; {skipped}")
    return tables, skipped if skipped.unreadable or skipped.without_target else None


def _has_target(path: Path, columns: TableColumns, *, labelled: bool) -> bool:
    if labelled and columns.target is None:
        raise ValueError(f"{path}: the column of targets is not named (target=, --target)")
    return labelled or columns.target in column_names(path)


def _targets(rows: list[_Row], columns: TableColumns, *, where: str) -> np.ndarray:
    """Targets of the rows; masked where a row has none."""
    numbers = {row.number: _number(row.target) for row in rows if row.target is not None}
    texts = [row for row, number in numbers.items() if number is None]
    if texts and len(texts) < len(numbers):
        other = next(row for row, number in numbers.items() if number is not None)
        raise ValueError(f"{where}: row {texts[0]} has text and row {other} a number; targets are one or the other")
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
    """A field as a number, ``None`` if it is text. Whole numbers are integers: tables often hold them as 1.0."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _identifiers(values: list[Any]) -> np.ndarray:
    """Integers as such, everything else as text; a row without an identifier has an empty one."""
    if all(type(value) is int and -(2**63) <= value < 2**63 for value in values):
        return np.array(values)
    return np.array(["" if value is None else str(value) for value in values], dtype=np.str_)

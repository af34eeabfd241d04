"""The result of a command, and plain-text tables."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class CommandResult(NamedTuple):
    """The result of a command as JSON data and as text, and the exit code."""

    data: Any
    text: str
    code: int = 0


def announce(notices: Iterable[str]) -> None:
    """Print what a run is about to do, once its inputs are known to be valid."""
    for notice in notices:
        print(f"tfgw: {notice}", file=sys.stderr)


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Format rows with aligned columns; numbers are right-aligned."""
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


def _show(cell: Any) -> str:
    if cell is None:
        return "-"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)

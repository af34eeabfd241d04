"""Read comma-separated numbers from a byte stream, block by block, so that memory stays bounded."""

import math
import warnings
from collections.abc import Iterator
from typing import IO, NamedTuple, NoReturn

import numpy as np

BLOCK_BYTES = 2**24

_COMMA, _NEWLINE = b",\n"


class Block(NamedTuple):
    """Consecutive lines of a file: ``values`` is (lines, columns), ``first_line`` counts from 1."""

    first_line: int
    values: np.ndarray


def read_table(stream: IO[bytes], *, dtype: type, columns: int | None = None, label: str) -> np.ndarray:
    """Read the whole stream as one (lines, columns) array; ``columns=None`` takes the first line's number."""
    return np.concatenate([block.values for block in read_blocks(stream, dtype=dtype, columns=columns, label=label)])


def read_blocks(stream: IO[bytes], *, dtype: type, columns: int | None = None, label: str) -> Iterator[Block]:
    """Yield the stream's lines as blocks of numbers; ``label`` names the file in errors."""
    first_line = 1
    for text in _blocks_of_lines(stream, label=label):
        columns = columns or text[: text.index(b"\n")].count(b",") + 1
        values = _parse_fast(text, dtype=dtype, columns=columns)
        if values is None:
            _raise_at_bad_line(text, dtype=dtype, columns=columns, first_line=first_line, label=label)
        yield Block(first_line, values)
        first_line += len(values)
    if first_line == 1:
        raise ValueError(f"{label}: the file is empty")


def _blocks_of_lines(stream: IO[bytes], *, label: str) -> Iterator[bytes]:
    """Cut the stream into blocks that end with a newline; blank lines at its end are dropped."""
    rest = b""
    while chunk := stream.read(BLOCK_BYTES):
        text = rest + chunk
        # The last line with content is held back: blank lines after it may turn out to end the file.
        end = text.rstrip().rfind(b"\n") + 1
        if end == 0 and len(text) > 2 * BLOCK_BYTES:
            raise ValueError(f"{label}: a line is longer than {BLOCK_BYTES} bytes")
        if end:
            yield text[:end]
        rest = text[end:]
    if rest := rest.rstrip():
        yield rest + b"\n"


def _parse_fast(text: bytes, *, dtype: type, columns: int) -> np.ndarray | None:
    """Parse well-formed lines at C speed; None where anything is amiss."""
    characters = np.frombuffer(text, dtype=np.uint8)
    separators = characters[(characters == _COMMA) | (characters == _NEWLINE)]
    expected = np.array([_COMMA] * (columns - 1) + [_NEWLINE], dtype=np.uint8)
    if separators.size % columns or not (separators.reshape(-1, columns) == expected).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's way to say that it stopped at bad text
        try:
            values: np.ndarray = np.fromstring(text.replace(b",", b" "), dtype=dtype, sep=" ")
        except ValueError:
            return None
    if values.size != separators.size or not np.isfinite(values).all():
        return None
    return values.reshape(-1, columns)


def _raise_at_bad_line(text: bytes, *, dtype: type, columns: int, first_line: int, label: str) -> NoReturn:
    noun = "integer" if np.issubdtype(dtype, np.integer) else "finite number"
    wanted = f"one {noun}" if columns == 1 else f"{columns} comma-separated {noun}s"
    for number, line in enumerate(text.splitlines(), start=first_line):
        if not _is_good_line(line, dtype=dtype, columns=columns):
            shown = line[:60].decode(errors="replace")
            raise ValueError(f"{label}, line {number}: expected {wanted}, found {shown!r}")
    raise ValueError(f"{label}: expected {wanted} on each line from line {first_line} on")


def _is_good_line(line: bytes, *, dtype: type, columns: int) -> bool:
    fields = line.split(b",")
    try:
        numbers = [int(field) if np.issubdtype(dtype, np.integer) else float(field) for field in fields]
    except ValueError:
        return False
    return len(numbers) == columns and all(map(math.isfinite, numbers))

"""Read comma-separated numbers from a byte stream in blocks, with bounded memory."""

import math
import warnings
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np

from tfgw.datasets.limits import check_array

BLOCK_BYTES = 2**24

_COMMA, _NEWLINE = b",\n"
_IS_WORD = np.ones(256, dtype=bool)
_IS_WORD[list(b", \t\n\v\f\r")] = False
_SAFE_DIGITS = 18
"""A number with this many characters fits in 64 bits; NumPy clips larger numbers."""


class Block(NamedTuple):
    """Consecutive lines of a file: ``values`` is (lines, columns), ``first_line`` counts from 1."""

    first_line: int
    values: np.ndarray


def read_table(
    stream: IO[bytes], *, dtype: type, columns: int | None = None, label: str, may_be_empty: bool = False
) -> np.ndarray:
    """Read the whole stream as one (lines, columns) array; ``columns=None`` means as many as in the first line."""
    blocks = [block.values for block in read_blocks(stream, dtype=dtype, columns=columns, label=label)]
    if not blocks and not may_be_empty:
        raise ValueError(f"{label}: the file is empty")
    return np.concatenate(blocks) if blocks else np.empty((0, columns or 0), dtype)


def read_blocks(
    stream: IO[bytes],
    *,
    dtype: type,
    columns: int | None = None,
    label: str,
    block_bytes: int | None = None,
    kept: bool = True,
) -> Iterator[Block]:
    """Yield the lines of a stream as blocks of numbers.

    Args:
        stream: Text to read.
        dtype: Type of the numbers.
        columns: Numbers per line (default: as in the first line).
        label: Name of the file in error messages.
        block_bytes: Approximate size of a block (default: :data:`BLOCK_BYTES`).
        kept: Whether the caller keeps all blocks, so that their total size must not exceed the memory limit.
    """
    first_line = 1
    for text in _blocks_of_lines(stream, label=label, block_bytes=block_bytes or BLOCK_BYTES):
        columns = columns or text[: text.index(b"\n")].count(b",") + 1
        values = _parse_fast(text, dtype=dtype, columns=columns)
        if values is None:
            values = _parse_lines(text, dtype=dtype, columns=columns, first_line=first_line, label=label)
        yield Block(first_line, values)
        first_line += len(values)
        if kept:
            check_array(first_line - 1, columns, itemsize=values.itemsize, what=label, instead="split the dataset")


def _blocks_of_lines(stream: IO[bytes], *, label: str, block_bytes: int) -> Iterator[bytes]:
    """Split the stream into blocks that end with a newline; trailing blank lines are dropped."""
    rest = b""
    while chunk := stream.read(block_bytes):
        text = rest + chunk
        # Hold back the last non-blank line, because blank lines after it may end the file.
        end = text.rstrip().rfind(b"\n") + 1
        if end == 0 and len(text) > 2 * block_bytes:
            raise ValueError(f"{label}: a line is longer than {block_bytes} bytes")
        if end:
            yield text[:end]
        rest = text[end:]
    if rest := rest.rstrip():
        yield rest + b"\n"


def _parse_fast(text: bytes, *, dtype: type, columns: int) -> np.ndarray | None:
    """Parse well-formed lines with NumPy; return ``None`` for malformed text or integers of more than 64 bits."""
    characters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((characters == _COMMA) | (characters == _NEWLINE))
    expected = np.array([_COMMA] * (columns - 1) + [_NEWLINE], dtype=np.uint8)
    if ends.size % columns or not (characters[ends].reshape(-1, columns) == expected).all():
        return None
    starts = _word_starts(characters)
    if starts.size != ends.size or (starts > ends).any() or (starts[1:] < ends[:-1]).any():
        return None  # a field without a number or with several numbers
    if np.issubdtype(dtype, np.integer) and ((ends - starts).max() > _SAFE_DIGITS or _has_lone_sign(text, characters)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy warns when it stops at invalid text
        try:
            values: np.ndarray = np.fromstring(text.replace(b",", b" "), dtype=dtype, sep=" ")
        except ValueError:
            return None
    if values.size != ends.size or not np.isfinite(values).all():
        return None
    return values.reshape(-1, columns)


def _has_lone_sign(text: bytes, characters: np.ndarray) -> bool:
    """Whether a sign is not followed by a digit, which NumPy would read as 0."""
    if b"-" not in text and b"+" not in text:
        return False
    after = characters[np.flatnonzero((characters == ord("-")) | (characters == ord("+"))) + 1]
    return bool(((after < ord("0")) | (after > ord("9"))).any())


def _word_starts(characters: np.ndarray) -> np.ndarray:
    """Return the starts of runs of characters other than commas and white space."""
    is_word = _IS_WORD[characters]
    is_start = is_word.copy()
    is_start[1:] &= ~is_word[:-1]
    return np.flatnonzero(is_start)


def _parse_lines(text: bytes, *, dtype: type, columns: int, first_line: int, label: str) -> np.ndarray:
    """Parse line by line; the error message names the first invalid line."""
    is_integer = np.issubdtype(dtype, np.integer)
    noun = "integer" if is_integer else "finite number"
    wanted = f"one {noun}" if columns == 1 else f"{columns} comma-separated {noun}s"
    rows = []
    for number, line in enumerate(text.split(b"\n")[:-1], start=first_line):
        values = _parse_line(line, as_number=int if is_integer else float)
        shown = line.rstrip(b"\r")[:60].decode(errors="replace")
        if values is None or len(values) != columns:
            raise ValueError(f"{label}, line {number}: expected {wanted}, found {shown!r}")
        if is_integer and not all(-(2**63) <= value < 2**63 for value in values):
            raise ValueError(f"{label}, line {number}: integers have at most 64 bits, found {shown!r}")
        rows.append(values)
    return np.array(rows, dtype=dtype)


def _parse_line(line: bytes, *, as_number: type[int] | type[float]) -> list[float] | None:
    fields = line.split(b",")
    try:
        numbers = [as_number(field) for field in fields]
        return numbers if b"_" not in line and all(map(math.isfinite, numbers)) else None
    except (
        ValueError,
        OverflowError,
    ):  # Python limits the digits of integers, and the size of those converted to float
        return None

"""Graphs in JSON Lines format: one object in networkx's node-link format per line, in a plain or a gzip file.

    {"id": "mol-7", "target": 1, "nodes": [{"id": 0, "label": "C"}, {"id": 1, "label": "O"}],
     "edges": [{"source": 0, "target": 1, "label": "double"}]}

``docs/files.md`` documents all keys.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, cast

from tfgw.datasets.graph_tables import GraphTables, concatenated
from tfgw.datasets.node_link import node_link_tables

SUFFIXES = (".jsonl", ".jsonl.gz")
MAX_LINE_BYTES = 2**26
"""Limit of the length of a line. A graph of 100,000 nodes takes a few megabytes."""
_LINES_AT_ONCE = 2048
_COUNTED_BYTES = 2**24


class JsonLines:
    """A file with one graph per non-blank line."""

    parses_in_python = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name.removesuffix(".gz").removesuffix(".jsonl")

    def fingerprint(self) -> str:
        """Path, size and time of the file."""
        status = self.path.stat()
        facts = (str(self.path.resolve()), status.st_size, status.st_mtime_ns)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def count(self) -> int | None:
        """Return the number of non-blank lines, or ``None`` for a gzip file, which would have to be unpacked."""
        if self.path.suffix == ".gz":
            return None
        count, before = 0, b"\n"
        with self.path.open("rb") as stream:
            while block := stream.read(_COUNTED_BYTES):
                text = before + block
                count += sum(map(bool, map(bytes.strip, text.split(b"\n")[1:-1])))
                before = b"\n" + text.rpartition(b"\n")[2]
        return count + bool(before.strip())

    def chunks(self, size: int, *, skip: int = 0) -> Iterator["JsonChunk"]:
        """The graphs after the first ``skip``, ``size`` lines at a time."""
        position, lines = 0, []
        for number, line in self._lines():
            position += 1
            if position > skip:
                lines.append((number, line))
            if len(lines) == size:
                yield JsonChunk(str(self.path), position - size, lines)
                lines = []
        if lines:
            yield JsonChunk(str(self.path), position - len(lines), lines)
        if not position:
            raise ValueError(f"{self.path}: the file is empty")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number, from 1, and text of each non-blank line."""
        with self._open() as stream:
            number = 0
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"{self.path}, line {number}: longer than {MAX_LINE_BYTES} bytes")
                if not line.isspace():
                    yield number, line

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path.suffix != ".gz":
            with self.path.open("rb") as stream:
                yield stream
            return
        try:
            with gzip.open(self.path, "rb") as unpacked:
                yield cast(IO[bytes], unpacked)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{self.path}: not a readable gzip file ({error})") from None


def read_json_lines(path: Path) -> GraphTables:
    """All graphs of a file."""
    parts = [chunk.tables() for chunk in JsonLines(path).chunks(_LINES_AT_ONCE)]
    try:
        return concatenated(parts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class JsonChunk(NamedTuple):
    """Consecutive lines of a file, with their numbers."""

    label: str
    first: int
    lines: list[tuple[int, bytes]]

    def tables(self) -> GraphTables:
        """Parse and check the graphs."""
        return node_link_tables((f"{self.label}, line {number}", partial(_loads, line)) for number, line in self.lines)


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("brackets are nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg}, column {error.colno})") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")

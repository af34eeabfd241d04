"""Records of finished cells, in a folder that several processes can use at the same time.

Each finished cell atomically writes one file, ``DATASET/CLASS/HASH.json``, so files are complete even if processes are
killed. ``pack`` collects the records of a dataset and a class in one file, ``DATASET/CLASS.jsonl``, with one record per
line, for archiving and committing. Both kinds of files are read. Each record carries a checksum of its content, which
reveals damage; records of older versions have none and are read without this check.

Writers hold a lock, which the system releases when a process dies. Readers need no lock: a packed record's own file is
removed only after the pack is replaced, and readers look in that order.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from os import stat_result
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from tfgw.datasets.paths import written_whole
from tfgw.paper.cells import Cell

Record = dict[str, Any]
"""``cell``, ``status`` (done or failed), ``result`` or ``error``, and ``run`` (information that differs between
runs)."""

CHECKSUM = "checksum"
"""Field that is stored with a record and is not part of it."""

NAME = re.compile(r"[\w+-][\w.+-]*")
"""Valid name of a dataset or class, which becomes part of a path."""


class Pack(NamedTuple):
    """The records of one group in one file, and the version of that file."""

    version: tuple[int, int, int] | None
    records: dict[str, Record]


class Records:
    """The records in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packs: dict[str, Pack] = {}

    def get(self, cell: Cell) -> Record | None:
        """Return the record of a cell, or ``None``."""
        _check_name(cell)
        found = _read(self._path(cell.key))
        return self._pack_of(cell.group).get(cell.key) if found is None else found

    def all_done(self, cells: Sequence[Cell]) -> list[Record] | None:
        """Return the records of these cells if all of them are done, else ``None``."""
        done = [record for cell in cells if (record := self.get(cell)) is not None and is_done(record)]
        return done if len(done) == len(cells) else None

    def put(self, record: Record) -> None:
        """Write a record atomically, replacing an older one."""
        _check_name(Cell(**record["cell"]))
        with self._lock(), written_whole(self._path(key_of(record))) as temporary:
            temporary.write_text(_line(record))

    def __iter__(self) -> Iterator[Record]:
        """Iterate over all records, ordered by key."""
        for group in self._groups():
            loose = self._loose(group)  # read before the pack, because they may be packed at the same time
            found = self._pack_of(group) | loose
            for key in sorted(found):
                yield found[key]

    def merge_from(self, other: "Records", supersedes: Callable[[Record, Record], bool]) -> None:
        """Add the records of another folder, such as from another machine.

        Records of cells that this folder has too are added if ``supersedes(theirs, ours)``.
        """
        for record in other:
            with self._lock():
                ours = self.get(Cell(**record["cell"]))
                if ours is None or supersedes(record, ours):
                    self.put(record)

    def pack(self) -> int:
        """Collect the records of each group in one file, and return the number of records."""
        with self._lock():
            for left_behind in self.folder.glob(
                "*/**/.*.json*"
            ):  # left by killed writers, because others hold the lock
                left_behind.unlink()
            return sum(self._pack_group(group) for group in self._groups())

    def _pack_group(self, group: str) -> int:
        loose, path = self._loose(group), self._pack_path(group)
        found = _packed_lines(path) if path.exists() else {}
        if not loose:
            return len(found)
        found |= {key: _line(record).encode() for key, record in loose.items()}  # the others stay as they are
        with written_whole(path) as temporary:
            temporary.write_bytes(b"".join(found[key] for key in sorted(found)))
        for key in loose:  # remove last; a record in both files is read once
            self._path(key).unlink()
        with suppress(OSError):  # the folder is missing, or contains a damaged file
            (self.folder / group).rmdir()
        return len(found)

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        # A singleton, so that a thread can acquire the lock again.
        return FileLock(self.folder / ".lock", is_singleton=True)

    def _groups(self) -> list[str]:
        files = self.folder.glob("*/[!.]*.jsonl")
        folders = (path for path in self.folder.glob("*/*") if path.is_dir())
        return sorted({f"{path.parent.name}/{path.name.removesuffix('.jsonl')}" for path in (*files, *folders)})

    def _loose(self, group: str) -> dict[str, Record]:
        """Return the records of a group that have their own file."""
        paths = (self.folder / group).glob("[!.]*.json")
        return {f"{group}/{path.stem}": record for path in paths if (record := _read(path)) is not None}

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _pack_path(self, group: str) -> Path:
        return self.folder / f"{group}.jsonl"

    def _pack_of(self, group: str) -> dict[str, Record]:
        """Return the packed records; reread the file if it was replaced."""
        path = self._pack_path(group)
        try:
            version = _version(path.stat())
        except FileNotFoundError:
            version = None
        known = self._packs.get(group)
        if known is None or known.version != version:
            known = self._packs[group] = Pack(version, {} if version is None else _read_pack(path))
        return known.records


def key_of(record: Record) -> str:
    """Return the key of the cell of a record."""
    return Cell(**record["cell"]).key


def is_done(record: Record | None) -> bool:
    """Whether there is a record and its cell succeeded."""
    return record is not None and record["status"] == "done"


def _read(path: Path) -> Record | None:
    """Read a record from its own file; return ``None`` if there is none."""
    try:
        record = _parsed(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    if record is not None and not key_of(record).endswith(f"/{path.stem}"):
        warnings.warn(f"{path}: ignored, because it is the record of another cell", stacklevel=2)
        return None
    return record


def _read_pack(path: Path) -> dict[str, Record]:
    return {key_of(record): record for _, record in _valid_lines(path)}


def _packed_lines(path: Path) -> dict[str, bytes]:
    return {key_of(record): line + b"\n" for line, record in _valid_lines(path)}


def _valid_lines(path: Path) -> Iterator[tuple[bytes, Record]]:
    for number, line in enumerate(path.read_bytes().removesuffix(b"\n").split(b"\n"), start=1):
        record = _parsed(line, f"{path}, line {number}") if line else None
        if record is not None:
            yield line, record


def _parsed(text: bytes, place: str) -> Record | None:
    """Parse a record; return ``None`` with a warning if it is damaged."""
    try:
        record: Record = json.loads(text)
        _take_checksum(record)
        _check_name(Cell(**record["cell"]))
        if record["status"] not in ("done", "failed"):
            raise ValueError(f"unknown status {record['status']!r}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        warnings.warn(f"{place}: ignored, because it is not a valid record ({error!r})", stacklevel=2)
        return None
    return record


def _version(found: stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check_name(cell: Cell) -> None:
    for name in cell.group.split("/", maxsplit=1):
        if not NAME.fullmatch(name):
            raise ValueError(f"record: {name!r} is not a valid name of a dataset or class")


def _line(record: Record) -> str:
    return json.dumps(record | {CHECKSUM: _checksum(record)}, sort_keys=True) + "\n"


def _take_checksum(record: Record) -> None:
    """Remove the checksum; raise ``ValueError`` unless it matches the other fields."""
    checksum = record.pop(CHECKSUM, None)
    if checksum is not None and checksum != _checksum(record):
        raise ValueError("the checksum does not match")


def _checksum(record: Record) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]

"""Records of finished cells, in a folder that any number of processes use at once.

Each finished cell writes one file atomically: ``DATASET/CLASS/HASH.json``. Whatever is killed, and whenever, the files
are complete. ``pack`` collects those of a dataset and a class in one file, ``DATASET/CLASS.jsonl``, with a line per
record, for keeping and committing. Both kinds of files are read.

Writers hold a lock, which the system releases when a process dies. Readers need none: a record moves from its own file
to the pack, which is replaced before the file is removed, and readers look in that order.
"""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import stat_result
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from tfgw.datasets.paths import written_whole
from tfgw.paper.cells import Cell

Record = dict[str, Any]
"""``cell``, ``status`` (done or failed), ``result`` or ``error``, and ``run``: what differs between runs."""


NAME = re.compile(r"[\w+-][\w.+-]*")
"""Of a dataset or a class: it becomes part of a path."""


class Pack(NamedTuple):
    """The records of one group in one file, and which version of the file they were read from."""

    version: tuple[int, int, int] | None
    records: dict[str, Record]


class Records:
    """The records in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packs: dict[str, Pack] = {}

    def get(self, cell: Cell) -> Record | None:
        """The record of a cell, if there is one."""
        _check_name(cell)
        found = _read(self._path(cell.key))
        return self._pack_of(cell.group).get(cell.key) if found is None else found

    def all_done(self, cells: Sequence[Cell]) -> list[Record] | None:
        """The records of these cells, if all of them are done."""
        done = [record for cell in cells if (record := self.get(cell)) is not None and is_done(record)]
        return done if len(done) == len(cells) else None

    def put(self, record: Record) -> None:
        """Write a record atomically, replacing an older one."""
        _check_name(Cell(**record["cell"]))
        with self._lock(), written_whole(self._path(key_of(record))) as temporary:
            temporary.write_text(_line(record))

    def __iter__(self) -> Iterator[Record]:
        """All records, ordered by their keys."""
        for group in self._groups():
            loose = self._loose(group)  # before the pack, as they may be packed meanwhile
            found = self._pack_of(group) | loose
            for key in sorted(found):
                yield found[key]

    def merge_from(self, other: "Records") -> None:
        """Add the records of another folder, for example from another machine; our own finished records are kept."""
        for record in other:
            with self._lock():
                if not is_done(self.get(Cell(**record["cell"]))):
                    self.put(record)

    def pack(self) -> int:
        """Collect the files of each group in one; returns the number of records."""
        with self._lock():
            for left_behind in self.folder.glob("*/**/.*.json*"):  # by a writer that was killed: others hold the lock
                left_behind.unlink()
            return sum(self._pack_group(group) for group in self._groups())

    def _pack_group(self, group: str) -> int:
        loose = self._loose(group)
        found = self._pack_of(group) | loose
        with written_whole(self._pack_path(group)) as temporary:
            temporary.write_text("".join(_line(found[key]) for key in sorted(found)))
        for key in loose:  # only now: a record that is in both files is read once
            self._path(key).unlink()
        with suppress(OSError):  # there is no folder, or it has a damaged file
            (self.folder / group).rmdir()
        return len(found)

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        # A singleton, so that a thread that holds the lock can take it again.
        return FileLock(self.folder / ".lock", is_singleton=True)

    def _groups(self) -> list[str]:
        files = self.folder.glob("*/[!.]*.jsonl")
        folders = (path for path in self.folder.glob("*/*") if path.is_dir())
        return sorted({f"{path.parent.name}/{path.name.removesuffix('.jsonl')}" for path in (*files, *folders)})

    def _loose(self, group: str) -> dict[str, Record]:
        """The records of a group that have a file of their own."""
        paths = (self.folder / group).glob("[!.]*.json")
        return {f"{group}/{path.stem}": record for path in paths if (record := _read(path)) is not None}

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _pack_path(self, group: str) -> Path:
        return self.folder / f"{group}.jsonl"

    def _pack_of(self, group: str) -> dict[str, Record]:
        """The packed records, read again if the file was replaced."""
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
    """The key of a record's cell."""
    return Cell(**record["cell"]).key


def is_done(record: Record | None) -> bool:
    """Whether there is a record of a cell that succeeded."""
    return record is not None and record["status"] == "done"


def _read(path: Path) -> Record | None:
    """The record in a file of its own; ``None`` if there is none."""
    try:
        record = _parsed(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    if record is not None and not key_of(record).endswith(f"/{path.stem}"):
        warnings.warn(f"{path}: the record of another cell, left out", stacklevel=2)
        return None
    return record


def _read_pack(path: Path) -> dict[str, Record]:
    lines = enumerate(path.read_bytes().removesuffix(b"\n").split(b"\n"), start=1)
    parsed = (_parsed(line, f"{path}, line {number}") for number, line in lines if line)
    records = [record for record in parsed if record is not None]
    return {key_of(record): record for record in records}


def _parsed(text: bytes, place: str) -> Record | None:
    """A record, or ``None`` with a warning: damage costs one record, not all."""
    try:
        record: Record = json.loads(text)
        _check_name(Cell(**record["cell"]))
        if record["status"] not in ("done", "failed"):
            raise ValueError(f"unknown status {record['status']!r}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        warnings.warn(f"{place}: not a record, left out ({error!r})", stacklevel=2)
        return None
    return record


def _version(found: stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check_name(cell: Cell) -> None:
    for name in cell.group.split("/", maxsplit=1):
        if not NAME.fullmatch(name):
            raise ValueError(f"record: {name!r} is not the name of a dataset or a class, of which a path can be made")


def _line(record: Record) -> str:
    return json.dumps(record, sort_keys=True) + "\n"

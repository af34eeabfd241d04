"""Records of finished cells, in a folder.

Each finished cell writes one file atomically: ``DATASET/CLASS/HASH.json``. Whatever is killed, and whenever, the files
are complete. ``pack`` collects those of a dataset and a class in one file, ``DATASET/CLASS.jsonl``, with a line per
record, for keeping and committing. Both kinds of files are read.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfgw.datasets.paths import written_whole
from tfgw.paper.cells import Cell

Record = dict[str, Any]
"""``cell``, ``status`` (done or failed), ``result`` or ``error``, and ``run``: what differs between runs."""


class Records:
    """The records in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packed: dict[str, dict[str, Record]] = {}

    def get(self, cell: Cell) -> Record | None:
        """The record of a cell, if there is one."""
        path = self._path(cell.key)
        if path.is_file():
            return _read(path)
        return self._pack_of(cell.group).get(cell.key)

    def all_done(self, cells: Sequence[Cell]) -> list[Record] | None:
        """The records of these cells, if all of them are done."""
        done = [record for cell in cells if (record := self.get(cell)) is not None and is_done(record)]
        return done if len(done) == len(cells) else None

    def put(self, record: Record) -> None:
        """Write a record atomically, replacing an older one."""
        with written_whole(self._path(key_of(record))) as temporary:
            temporary.write_text(_line(record))

    def __iter__(self) -> Iterator[Record]:
        """All records, ordered by their keys."""
        for group in self._groups():
            found = self._pack_of(group) | {key: _read(path) for key, path in self._loose(group).items()}
            for key in sorted(found):
                yield found[key]

    def merge_from(self, other: "Records") -> None:
        """Add the records of another folder, for example from another machine; our own finished records are kept."""
        for record in other:
            if not is_done(self.get(Cell(**record["cell"]))):
                self.put(record)

    def pack(self) -> int:
        """Collect the files of each group in one; returns the number of records."""
        count = 0
        for group in self._groups():
            loose = self._loose(group)
            found = self._pack_of(group) | {key: _read(path) for key, path in loose.items()}
            with written_whole(self._pack_path(group)) as temporary:
                temporary.write_text("".join(_line(found[key]) for key in sorted(found)))
            # Only now: a record that is in both files is read once.
            for path in loose.values():
                path.unlink()
            with suppress(OSError):  # there is no folder, or a record was written meanwhile
                (self.folder / group).rmdir()
            self._packed.pop(group, None)
            count += len(found)
        return count

    def _groups(self) -> list[str]:
        files = self.folder.glob("*/*.jsonl")
        folders = (path for path in self.folder.glob("*/*") if path.is_dir())
        return sorted({f"{path.parent.name}/{path.name.removesuffix('.jsonl')}" for path in (*files, *folders)})

    def _loose(self, group: str) -> dict[str, Path]:
        return {f"{group}/{path.stem}": path for path in (self.folder / group).glob("[!.]*.json")}

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _pack_path(self, group: str) -> Path:
        return self.folder / f"{group}.jsonl"

    def _pack_of(self, group: str) -> dict[str, Record]:
        if group not in self._packed:
            path = self._pack_path(group)
            lines = path.read_text().splitlines() if path.is_file() else []
            records = [json.loads(line) for line in lines]
            self._packed[group] = {key_of(record): record for record in records}
        return self._packed[group]


def key_of(record: Record) -> str:
    """The key of a record's cell."""
    return Cell(**record["cell"]).key


def is_done(record: Record | None) -> bool:
    """Whether there is a record of a cell that succeeded."""
    return record is not None and record["status"] == "done"


def _read(path: Path) -> Record:
    record: Record = json.loads(path.read_text())
    return record


def _line(record: Record) -> str:
    return json.dumps(record, sort_keys=True) + "\n"

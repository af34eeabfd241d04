"""A file of rows whose writing can be interrupted and resumed.

``rows.csv.partial`` holds the rows so far, and ``rows.csv.state`` records how much of it is committed. When the same
command runs again, it truncates the file to the committed part and appends to it, so that each row is written once. The
partial file is renamed when it is complete; it is then identical to that of an uninterrupted run.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from tfgw.cli.row_formats import FORMATS, RowFormat, type_of
from tfgw.datasets.paths import written_whole
from tfgw.train.output_columns import Columns

_COMMIT_SECONDS = 0.5
"""Approximate time between commits, and so the most work that an interruption loses."""


def check_output(path: Path | None) -> None:
    """Raise an error early if ``--output`` names a file that cannot be written."""
    if path is None:
        return
    if path.suffix not in FORMATS:
        raise ValueError(f"--output {path}: the file name must end in one of {', '.join(FORMATS)}")
    if path.exists():
        raise FileExistsError(f"--output {path}: already exists")
    FORMATS[path.suffix].check()


class ResumableOutput:
    """An output file that is being written; see :func:`open_output`.

    Attributes:
        graphs: Number of graphs whose rows are committed.
        notes: Notes that were passed to the last :meth:`write`.
    """

    def __init__(
        self, path: Path, stream: BinaryIO, state_path: Path, state: dict[str, Any], types: Mapping[str, type]
    ) -> None:
        self._stream, self._state_path, self._state, self._types = stream, state_path, state, types
        self._format: RowFormat = FORMATS[path.suffix](state["types"])
        self._last_commit = time.monotonic()

    @property
    def graphs(self) -> int:
        """Number of graphs whose rows are committed."""
        return int(self._state["graphs"])

    @property
    def notes(self) -> dict[str, Any]:
        """Notes of the last committed rows."""
        return dict(self._state["notes"])

    def write(self, columns: Columns, notes: Mapping[str, Any]) -> None:
        """Append a row for each graph, and store ``notes`` (JSON) with them."""
        if not self._state["types"]:
            known = {name: self._types.get(name, type_of(values)).__name__ for name, values in columns.items()}
            self._state["types"] = self._format.types = known
            self._stream.write(self._format.header())
        self._stream.write(self._format.rows(columns))
        self._state |= {"graphs": self.graphs + len(columns["graph"]), "notes": dict(notes)}
        if time.monotonic() - self._last_commit >= _COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        """Commit the rows written so far."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        with written_whole(self._state_path) as temporary:
            temporary.write_text(json.dumps(self._state | {"bytes": self._stream.tell()}))
        self._last_commit = time.monotonic()


@contextmanager
def open_output(
    path: Path, identity: Mapping[str, Any], *, types: Mapping[str, type] | None = None
) -> Iterator[ResumableOutput]:
    """Open a new output file, or resume one whose command was interrupted.

    The file is complete when the ``with`` block ends. An error in the input (``ValueError``) deletes the partial file.
    After any other error or a kill, the same command resumes.

    Args:
        path: Path of the output file.
        identity: Everything that the rows depend on: model, source, options. Only a command with the same identity can
            resume.
        types: Types (``bool``, ``int``, ``float`` or ``str``) of columns whose first values may be missing.
    """
    check_output(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, state_path, lock_path = (path.with_name(path.name + end) for end in (".partial", ".state", ".lock"))
    try:
        lock = FileLock(lock_path).acquire(timeout=0)
    except Timeout:
        raise FileExistsError(f"--output {path}: another process is writing this file") from None
    with lock:
        state = _read_state(path, partial, state_path, identity)
        try:
            with partial.open("r+b" if partial.exists() else "xb") as stream:
                stream.truncate(state["bytes"])
                stream.seek(state["bytes"])
                output = ResumableOutput(path, stream, state_path, state, types or {})
                output.commit()
                yield output
                output.commit()
            FORMATS[path.suffix](state["types"]).finish(partial, path)
        except ValueError:
            partial.unlink(missing_ok=True)
            state_path.unlink(missing_ok=True)
            raise
        partial.unlink(missing_ok=True)
        state_path.unlink(missing_ok=True)
    lock_path.unlink(missing_ok=True)


def _read_state(path: Path, partial: Path, state_path: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()
    new = {"identity": digest, "graphs": 0, "bytes": 0, "types": {}, "notes": {}}
    if not state_path.exists():
        if partial.exists():  # killed before its first commit
            partial.unlink()
        return new
    try:
        state: dict[str, Any] = json.loads(state_path.read_text())
        is_usable = partial.stat().st_size >= state["bytes"] >= 0 and new.keys() <= state.keys()
    except (OSError, ValueError, TypeError, KeyError):
        return _restarted(new, state_path, partial)
    if not is_usable:
        return _restarted(new, state_path, partial)
    if state["identity"] != digest:
        raise FileExistsError(
            f"--output {path}: {partial.name} belongs to an interrupted command with another model, other graphs"
            f" or other options; delete {partial.name} and {state_path.name}, or choose another file"
        )
    return state


def _restarted(new: dict[str, Any], *files: Path) -> dict[str, Any]:
    """Start again, because the state file is damaged."""
    for file in files:
        file.unlink(missing_ok=True)
    return new

"""The text files of a dataset in TU format, in a folder or in a zip that is read without unpacking to disk."""

import hashlib
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from tfgw.datasets import limits

# Errors that zipfile raises for damaged zips, because it uses offsets, names and sizes before checking them.
_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    UnicodeDecodeError,
    EOFError,
    NotImplementedError,
    OverflowError,
    OSError,
)

_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


class TableFiles(Protocol):
    """``NAME_A.txt`` and its companions; a table is identified by the part after ``NAME_``, such as ``"A"``."""

    name: str

    def __contains__(self, table: str) -> bool: ...

    def label(self, table: str) -> str:
        """Return the name of the file for error messages."""

    def open(self, table: str) -> AbstractContextManager[IO[bytes]]: ...

    def fingerprint(self) -> str:
        """Return a fingerprint that changes with the files; it is the key in the cache."""


class FolderFiles:
    """Tables as text files in a folder."""

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        self.folder = folder
        self.name = name or _only_name((path.name for path in folder.iterdir()), where=str(folder))

    def _path(self, table: str) -> Path:
        return self.folder / f"{self.name}_{table}.txt"

    def __contains__(self, table: str) -> bool:
        return self._path(table).is_file()

    def label(self, table: str) -> str:
        return str(self._path(table))

    @contextmanager
    def open(self, table: str) -> Iterator[IO[bytes]]:
        with self._path(table).open("rb") as stream:
            yield stream

    def fingerprint(self) -> str:
        # Use size and time, because hashing the content would take longer than loading from the cache.
        paths = sorted(self.folder.glob(f"{self.name}_*.txt"))
        facts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        return hashlib.sha256(repr(facts).encode()).hexdigest()


class ZipFiles:
    """Tables as members of a zip, read as streams."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self._members = _safe_members(archive)
        self.name = _only_name(self._members, where=str(archive))

    def _member(self, table: str) -> str:
        return self._members[f"{self.name}_{table}.txt"]

    def __contains__(self, table: str) -> bool:
        return f"{self.name}_{table}.txt" in self._members

    def label(self, table: str) -> str:
        return f"{self.archive}: {self._member(table) if table in self else f'{self.name}_{table}.txt'}"

    @contextmanager
    def open(self, table: str) -> Iterator[IO[bytes]]:
        try:
            with zipfile.ZipFile(self.archive) as archive, archive.open(self._member(table)) as stream:
                yield stream
        except _BROKEN_ZIP as error:
            raise ValueError(f"{self.label(table)}: the member cannot be read ({error})") from None

    def fingerprint(self) -> str:
        with self.archive.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def content_digest(self) -> str:
        """Return the SHA-256 of the unpacked tables, which does not depend on the compression."""
        digest = hashlib.sha256()
        prefix = f"{self.name}_"
        for file_name in sorted(name for name in self._members if name.startswith(prefix)):
            digest.update(file_name.encode() + b"\0")
            with self.open(file_name.removeprefix(prefix).removesuffix(".txt")) as stream:
                while block := stream.read(2**20):
                    digest.update(block)
        return digest.hexdigest()


def open_files(path: str | os.PathLike[str]) -> TableFiles:
    """Return the tables of the dataset in ``path``, a folder or a zip."""
    path = Path(path).expanduser()
    if path.is_dir():
        return FolderFiles(path)
    if path.is_file():
        return ZipFiles(path)
    raise FileNotFoundError(f"{path}: no such folder or zip")


def _only_name(file_names: Iterable[str], *, where: str) -> str:
    names = sorted(name.removesuffix("_A.txt") for name in file_names if name.endswith("_A.txt"))
    if not names:
        raise ValueError(
            f"{where}: no file NAME_A.txt, so this is not a dataset in TU format (without edges, it must be empty)"
        )
    if len(names) > 1:
        raise ValueError(f"{where}: found {len(names)} datasets ({', '.join(names)}), expected one")
    return names[0]


def _safe_members(archive: Path) -> dict[str, str]:
    """Map file names to members for the text files of ``archive``; reject malicious zips."""
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
    except _BROKEN_ZIP as error:
        raise ValueError(f"{archive}: not a readable zip ({error})") from None

    members: dict[str, str] = {}
    unpacked, most = 0, _max_unpacked_bytes(archive)
    for info in infos:
        _check_member(archive, info)
        unpacked += info.file_size
        if unpacked > most:
            limit = f"{most} unpacked bytes"
            raise ValueError(f"{archive}: member {info.filename!r} exceeds the limit of {limit}")
        file_name = PurePosixPath(info.filename).name
        if not file_name.endswith(".txt") or file_name.startswith("._"):  # "._x": macOS resource forks
            continue
        if file_name in members:
            raise ValueError(f"{archive}: two members are named {file_name!r}, one of them {info.filename!r}")
        members[file_name] = info.filename
    return members


def _max_unpacked_bytes(archive: Path) -> int:
    by_compression = limits.MAX_COMPRESSION * archive.stat().st_size
    return min(limits.MAX_UNPACKED_BYTES, max(limits.ALWAYS_UNPACKED_BYTES, by_compression))


def _check_member(archive: Path, info: zipfile.ZipInfo) -> None:
    path = info.filename.replace("\\", "/")
    if path.startswith("/") or path[1:2] == ":" or ".." in path.split("/"):
        raise ValueError(f"{archive}: member {info.filename!r} points outside the archive")
    if _CONTROL_CHARACTER.search(info.filename):
        raise ValueError(f"{archive}: member {info.filename!r} has a control character in its name")
    if info.flag_bits & 0x1:
        raise ValueError(f"{archive}: member {info.filename!r} is encrypted")

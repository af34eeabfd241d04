"""Folders of datasets and of the cache, and atomic writing of files."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA_VARIABLE = "TFGW_DATA"


def cache_folder() -> Path:
    """Return the per-user cache folder: ``$XDG_CACHE_HOME/tfgw``, or ``~/.cache/tfgw``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tfgw"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of raw datasets: ``data_dir``, else ``$TFGW_DATA``, else a folder in the per-user cache."""
    named = data_dir or os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "tu"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Provide a temporary path next to ``path``; when the block succeeds, sync it to disk and rename it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is unique, because two processes may write at once. The suffix stays last, or NumPy would append one.
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(8)}{path.suffix}")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        if os.name == "posix":
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Where datasets are looked for and parsed ones are kept, and how a file is written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA_VARIABLE = "TFGW_DATA"


def cache_folder() -> Path:
    """The per-user cache: ``$XDG_CACHE_HOME/tfgw``, or ``~/.cache/tfgw``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tfgw"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of raw datasets: ``data_dir``, else ``$TFGW_DATA``, else a folder of the per-user cache."""
    named = data_dir or os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "tu"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to; move it into place, on the disk, when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, for two may write at once; the suffix stays last, or numpy would append one.
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
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

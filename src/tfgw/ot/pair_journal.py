"""Store distances on disk as they are computed, so that an interrupted call can continue."""

import os
from pathlib import Path

import numpy as np

_MAGIC = b"tfgw distances 1\n"
"""The number increases whenever the solver's distances or the order of pairs change."""
_VALUE = np.dtype("<f8")


class PairJournal:
    """The distances of a call, in the order in which it solves its pairs. The order depends only on its arguments.

    The file consists of a header with a digest of the arguments, followed by the distances, eight bytes each. An
    incomplete value is solved again. Concurrent calls that solve the same problem may share a file, because they write
    the same values.

    Args:
        path: The file, which need not exist, or a folder with one file per problem. If ``None``, nothing is stored.
        digest: Digest of everything that the distances depend on.

    Raises:
        ValueError: If the file is not a checkpoint of this problem.
    """

    def __init__(self, path: str | os.PathLike[str] | None, digest: bytes) -> None:
        self._known = np.empty(0)
        self._path = None
        if path is None:
            return
        self._path = Path(path)
        if self._path.is_dir():
            self._path /= f"{digest.hex()[:32]}.distances"
        header = _MAGIC + digest
        self._end = len(header)
        content = self._path.read_bytes() if self._path.exists() else b""
        if header.startswith(content):  # new, or interrupted while the header was written
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._write(0, header)
        elif not content.startswith(_MAGIC):
            raise ValueError(f"checkpoint: {self._path} is not a checkpoint of pairwise distances")
        elif not content.startswith(header):
            raise ValueError(
                f"checkpoint: {self._path} has the distances of other graphs or options; remove it or choose another"
            )
        count = max(0, len(content) - len(header)) // _VALUE.itemsize
        self._known = np.frombuffer(content, _VALUE, count, len(header) if count else 0).astype(np.float64)

    @property
    def is_kept(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def take(self, count: int) -> np.ndarray:
        """Return the next stored distances, at most ``count``."""
        taken, self._known = self._known[:count], self._known[count:]
        if self._path is not None:
            self._end += taken.size * _VALUE.itemsize
        return taken

    def append(self, values: np.ndarray) -> None:
        """Store the next distances."""
        if self._path is not None:
            self._write(self._end, values.astype(_VALUE).tobytes())
            self._end += values.size * _VALUE.itemsize

    def _write(self, place: int, content: bytes) -> None:
        assert self._path is not None
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b") as file:
            file.seek(place)
            file.write(content)

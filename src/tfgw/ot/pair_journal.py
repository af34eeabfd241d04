"""Distances on disk while they are computed, so that a killed call can continue."""

import os
from pathlib import Path

import numpy as np

_MAGIC = b"tfgw distances 1\n"
"""The number is raised when the solver's distances, or the order in which pairs are solved, change."""
_VALUE = np.dtype("<f8")


class PairJournal:
    """The distances of a call in the order in which it solves its pairs, which depends on its arguments alone.

    The file has a header with a digest of the arguments, and then the distances, eight bytes each. A value that was cut
    short is solved again. Calls that solve the same problem at the same time may share a file, as they write the same.

    Args:
        path: The file, which need not exist, or a folder that has a file for each problem; ``None`` keeps nothing.
        digest: Of everything that the distances depend on.

    Raises:
        ValueError: If the file belongs to something else.
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
        if header.startswith(content):  # new, or killed while it was made
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

    def take(self, count: int) -> np.ndarray:
        """The next distances that are known already, at most so many."""
        taken, self._known = self._known[:count], self._known[count:]
        if self._path is not None:
            self._end += taken.size * _VALUE.itemsize
        return taken

    def append(self, values: np.ndarray) -> None:
        """Keep the distances that come next."""
        if self._path is not None:
            self._write(self._end, values.astype(_VALUE).tobytes())
            self._end += values.size * _VALUE.itemsize

    def _write(self, place: int, content: bytes) -> None:
        assert self._path is not None
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b") as file:
            file.seek(place)
            file.write(content)

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
    short is solved again.

    Args:
        path: The file, which need not exist; ``None`` keeps nothing.
        digest: Of everything that the distances depend on.

    Raises:
        ValueError: If the file belongs to something else.
    """

    def __init__(self, path: str | os.PathLike[str] | None, digest: bytes) -> None:
        self._path = None if path is None else Path(path)
        self._known = np.empty(0)
        if self._path is None:
            return
        header = _MAGIC + digest
        content = self._path.read_bytes() if self._path.exists() else b""
        if header.startswith(content):  # new, or killed while it was made
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(header)
            return
        if not content.startswith(_MAGIC):
            raise ValueError(f"checkpoint: {self._path} is not a checkpoint of pairwise distances")
        if not content.startswith(header):
            raise ValueError(
                f"checkpoint: {self._path} has the distances of other graphs or options; remove it or choose another"
            )
        count = (len(content) - len(header)) // _VALUE.itemsize
        self._known = np.frombuffer(content, _VALUE, count, len(header)).astype(np.float64)
        os.truncate(self._path, len(header) + count * _VALUE.itemsize)

    def take(self, count: int) -> np.ndarray:
        """The next distances that are known already, at most so many."""
        taken, self._known = self._known[:count], self._known[count:]
        return taken

    def append(self, values: np.ndarray) -> None:
        """Keep the distances that come next."""
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(values.astype(_VALUE).tobytes())

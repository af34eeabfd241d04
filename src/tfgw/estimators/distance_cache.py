"""Cache of distance tables in a folder: two files each, the matrix and the keys of its graphs."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfgw.datasets.paths import written_whole
from tfgw.estimators.distance_table import DistanceTable

_VERSION = "v2"
"""Version in the folder name, increased when the distances of the solver change."""


def read_table(folder: Path | None, keys: Sequence[str]) -> DistanceTable | None:
    """Return a table that contains all of these graphs, with a memory-mapped matrix, or ``None``."""
    if folder is None:
        return None
    for path in sorted((folder / _VERSION).glob("[!.]*.keys.npy")):
        table = DistanceTable(np.load(path, allow_pickle=False), np.empty(0))
        if table.covers(keys):
            matrix = np.load(path.with_name(path.name.replace(".keys", "")), mmap_mode="r", allow_pickle=False)
            return DistanceTable(table.keys, matrix)
    return None


def write_table(folder: Path | None, table: DistanceTable) -> None:
    """Store a complete table in the folder."""
    if folder is None:
        return
    name = hashlib.sha256("".join(table.keys.tolist()).encode()).hexdigest()[:20]
    # Write the keys last, so that the matrix exists if they do.
    for path, array in ((f"{name}.npy", table.matrix), (f"{name}.keys.npy", table.keys)):
        with written_whole(folder / _VERSION / path) as temporary:
            np.save(temporary, array, allow_pickle=False)

"""Cache of distance tables in a folder: two files each, the matrix and the keys of its graphs."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock

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


def cached_table(folder: Path | None, keys: Sequence[str], compute: Callable[[], DistanceTable]) -> DistanceTable:
    """Return a table of all of these graphs from the folder. If it has none, compute and store one.

    Of several processes that need the same table at the same time, one computes it, and the others wait.
    """
    table = read_table(folder, keys)
    if table is not None:
        return table
    if folder is None:
        return compute()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{_name(sorted(set(keys)))}.lock"):
        table = read_table(folder, keys)
        if table is None:
            table = compute()
            write_table(folder, table)
    return table


def write_table(folder: Path, table: DistanceTable) -> None:
    """Store a complete table in the folder."""
    name = _name(table.keys.tolist())
    # Write the keys last, so that the matrix exists if they do.
    for path, array in ((f"{name}.npy", table.matrix), (f"{name}.keys.npy", table.keys)):
        with written_whole(folder / _VERSION / path) as temporary:
            np.save(temporary, array, allow_pickle=False)


def _name(keys: Sequence[str]) -> str:
    return hashlib.sha256("".join(keys).encode()).hexdigest()[:20]

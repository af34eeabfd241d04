"""Keep parsed datasets in the per-user cache, as plain numpy arrays without pickle."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np

from tfgw.datasets.files import TableFiles
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.paths import cache_folder, written_whole
from tfgw.datasets.tu_format import read_tables

_VERSION = 1
"""Part of the file's name: raised when what the parser makes of the same text changes."""


def cached_tables(files: TableFiles) -> GraphTables:
    """The parsed form of ``files``, from the cache where it is there and intact."""
    path = cache_folder() / "parsed" / f"{files.name}-{files.fingerprint()[:24]}-v{_VERSION}.npz"
    tables = _read(path)
    if tables is None:
        tables = read_tables(files)
        _write(path, tables)
    return tables


def _read(path: Path) -> GraphTables | None:
    """None where the file is absent or damaged: the zip's checksums tell."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return GraphTables(**arrays)
    except Exception:  # zipfile and numpy have many ways to say that a file is damaged; the text is still there
        return None


def _write(path: Path, tables: GraphTables) -> None:
    fields = {field.name: getattr(tables, field.name) for field in dataclasses.fields(tables)}
    arrays = {name: array for name, array in fields.items() if array is not None}
    try:
        with written_whole(path) as temporary:
            np.savez(temporary, allow_pickle=False, **arrays)
    except OSError as error:
        warnings.warn(f"the parsed dataset could not be kept in the cache: {error}", stacklevel=2)

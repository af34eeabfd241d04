"""Cache of parsed datasets in the per-user cache folder, as NumPy arrays without pickle."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np

from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.paths import cache_folder, written_whole
from tfgw.datasets.tu_files import TableFiles
from tfgw.datasets.tu_format import read_tables

_VERSION = 1
"""Version in the file name, increased when the parser changes its result for the same text."""


def cached_tables(files: TableFiles) -> GraphTables:
    """Return the parsed tables of ``files``, from the cache if possible."""
    path = cache_folder() / "parsed" / f"{files.name}-{files.fingerprint()[:24]}-v{_VERSION}.npz"
    tables = _read(path)
    if tables is None:
        tables = read_tables(files)
        _write(path, tables)
    return tables


def _read(path: Path) -> GraphTables | None:
    """Return ``None`` if the file is missing or damaged, which the checksums of the zip detect."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return GraphTables(**arrays)
    except (
        Exception
    ):  # zipfile and numpy raise many types of errors for damaged files; the text files can still be parsed
        return None


def _write(path: Path, tables: GraphTables) -> None:
    fields = {field.name: getattr(tables, field.name) for field in dataclasses.fields(tables)}
    arrays = {name: array for name, array in fields.items() if array is not None}
    try:
        with written_whole(path) as temporary:
            np.savez(temporary, allow_pickle=False, **arrays)
    except OSError as error:
        warnings.warn(f"the parsed dataset could not be cached: {error}", stacklevel=2)

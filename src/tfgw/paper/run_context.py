"""Folders and resources for running cells."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Folders and resources of a run. The result of a cell does not depend on them.

    Args:
        results: Folder of the records.
        data_dir: Folder of the datasets (default: as in :func:`tfgw.datasets.load`).
        splits: File or folder of published splits.
        accelerator: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        threads: Number of threads per cell.
        distances: Folder in which cells share distances between graphs (default: in the user's cache folder).
        jobs: Number of cells at a time, which explains the times in the records. ``None`` if it is not known.
    """

    results: Path
    data_dir: Path | None = None
    splits: Path | None = None
    accelerator: str = "auto"
    threads: int = 1
    distances: Path | None = None
    jobs: int | None = None

"""Where and how cells run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Folders and resources of a run; the result of a cell depends on none of them.

    Args:
        results: Folder of the records.
        data_dir: Folder of the datasets; ``None``: that of :func:`tfgw.datasets.load`.
        splits: File or folder of published splits.
        accelerator: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        threads: Threads of one cell.
    """

    results: Path
    data_dir: Path | None = None
    splits: Path | None = None
    accelerator: str = "auto"
    threads: int = 1

"""List the datasets in a folder."""

from pathlib import Path

from tfgw.datasets.graphml import is_graphml_folder
from tfgw.datasets.json_lines import SUFFIXES as JSON_LINES
from tfgw.datasets.table_file import SUFFIXES as TABLES


def datasets_in(folder: Path) -> list[Path]:
    """Return the paths that :func:`tfgw.datasets.load` accepts: zips, files, and folders of tables or GraphML, by name.

    If the folder itself contains the text files of a dataset, or GraphML files, it is included.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [path for path in (folder, *inside) if _is_dataset(path)]


def _is_dataset(path: Path) -> bool:
    if path.is_dir():
        return any(path.glob("*_A.txt")) or is_graphml_folder(path)
    return path.name.endswith((".zip", *JSON_LINES, *TABLES))

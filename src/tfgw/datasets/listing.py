"""What a folder holds that can be loaded."""

from pathlib import Path

from tfgw.datasets.graphml import is_graphml_folder
from tfgw.datasets.json_lines import SUFFIXES as JSON_LINES
from tfgw.datasets.table_file import SUFFIXES as TABLES


def datasets_in(folder: Path) -> list[Path]:
    """Paths that :func:`tfgw.datasets.load` takes: zips, files, and folders of tables or of GraphML, by name.

    A folder that itself holds the text files of a dataset, or GraphML files, is one of them.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder")
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [path for path in (folder, *inside) if _is_dataset(path)]


def _is_dataset(path: Path) -> bool:
    if path.is_dir():
        return any(path.glob("*_A.txt")) or is_graphml_folder(path)
    return path.name.endswith((".zip", *JSON_LINES, *TABLES))

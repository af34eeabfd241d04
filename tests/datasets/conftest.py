"""Tiny datasets in TU format, written by hand, and a cache folder of each test's own."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

WriteTables = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the user's folders."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFGW_DATA", raising=False)
    return tmp_path / "cache" / "tfgw"


@pytest.fixture
def tiny() -> dict[str, str]:
    """Three graphs of 3, 2 and 4 nodes: a path, an edge, and a triangle beside an isolated node.

    The edges are out of order; one is listed twice and one is a self-loop.
    """
    return {
        "A": "2, 1\n1, 2\n5, 4\n2, 3\n3, 2\n4, 5\n6, 7\n7, 6\n8, 7\n7, 8\n6, 8\n8, 6\n6, 7\n9, 9\n",
        "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n3\n3\n",
        "graph_labels": "5\n-2\n5\n",
        "node_labels": "7\n7\n3\n3\n9\n7\n7\n7\n3\n",
        "edge_labels": "0\n0\n4\n1\n1\n4\n0\n0\n1\n1\n4\n4\n1\n4\n",
    }


@pytest.fixture
def write_folder(tmp_path: Path) -> WriteTables:
    """Write tables as ``NAME_table.txt`` files of a folder."""

    def write(tables: dict[str, str], *, name: str = "TINY", folder: Path | None = None) -> Path:
        folder = folder or tmp_path / "folder"
        folder.mkdir(parents=True, exist_ok=True)
        for table, text in tables.items():
            (folder / f"{name}_{table}.txt").write_text(text, newline="")
        return folder

    return write


@pytest.fixture
def write_zip(tmp_path: Path) -> WriteTables:
    """Write tables as members ``NAME/NAME_table.txt`` of a zip."""

    def write(tables: dict[str, str], *, name: str = "TINY", path: Path | None = None) -> Path:
        path = path or tmp_path / f"{name}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for table, text in tables.items():
                archive.writestr(f"{name}/{name}_{table}.txt", text)
        return path

    return write

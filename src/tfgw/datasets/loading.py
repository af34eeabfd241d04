"""Find a dataset by name or path, and load it."""

import os
import warnings
from pathlib import Path

from tfgw.datasets.cache import cached_tables
from tfgw.datasets.download import download
from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features
from tfgw.datasets.graph_dataset import GraphDataset, build_dataset
from tfgw.datasets.graph_parquet import GraphParquet, is_graph_parquet, read_graph_parquet
from tfgw.datasets.graph_source import GraphSource
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.graphml import is_graphml_folder, read_graphml
from tfgw.datasets.json_lines import SUFFIXES, JsonLines, read_json_lines
from tfgw.datasets.molecule_stream import MoleculeSource
from tfgw.datasets.molecule_table import TableColumns, read_molecules
from tfgw.datasets.node_encoding import NodeEncoding
from tfgw.datasets.paths import data_folder
from tfgw.datasets.table_file import SUFFIXES as TABLES
from tfgw.datasets.tu_catalog import CONTENT_SHA256, full_name
from tfgw.datasets.tu_files import FolderFiles, TableFiles, ZipFiles, open_files
from tfgw.datasets.tu_format import missing_targets
from tfgw.datasets.tu_stream import TablesSource, TuSource


def load(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    features: Features = "auto",
    max_degree: int = DEFAULT_MAX_DEGREE,
    encoding: NodeEncoding | None = None,
    columns: TableColumns | None = None,
    labelled: bool | None = None,
) -> GraphDataset:
    """Load a dataset by name or path.

    Supported formats are TU format, JSON Lines (:mod:`tfgw.datasets.json_lines`), a folder of GraphML files
    (:mod:`tfgw.datasets.graphml`), Parquet files of graphs (:mod:`tfgw.datasets.graph_parquet`), and tables of
    molecules.

    Args:
        source: A name such as ``"MUTAG"``, ``"PTC"`` or ``"IMDB-B"``, or the path of your own folder, zip or file (with
            a separator, as in ``"./mine"``, or ending in ``.zip``, ``.jsonl``, ``.jsonl.gz``, ``.csv`` or ``.parquet``,
            or a ``Path``).
        data_dir: Folder in which a name is looked up, as ``NAME.zip`` or as text files, directly or in a subfolder
            ``NAME`` (default: environment variable ``TFGW_DATA``, else a folder in the per-user cache). The paper's
            eight datasets are downloaded to it if they are missing.
        features: Node features, see :class:`NodeEncoding`. ``"auto"`` uses attributes and labels if there are any, else
            degrees.
        max_degree: Largest one-hot degree.
        encoding: Existing encoding to apply, such as that of a model; ``features`` and ``max_degree`` are then ignored,
            and the graphs need no targets. Unknown labels are encoded as zeros, with a warning; see ``unseen`` of
            :class:`GraphDataset`.
        columns: Column names of a CSV or Parquet file of molecules. Rows that cannot be read are skipped, with a
            warning that counts them.
        labelled: Whether to skip rows of such a table that have no target (default: unless ``encoding`` is given).
            Otherwise their ``y`` is −1, or NaN for regression.

    Parsed datasets are stored in the per-user cache, so that the second load of a large dataset is fast.
    """
    labelled = encoding is None if labelled is None else labelled
    if is_table(source) and not is_graph_parquet(Path(source).expanduser()):
        name, tables, missing = _read_table(Path(source).expanduser(), columns, labelled=labelled)
    else:
        name, tables, missing = _read(source, data_dir)
    if encoding is None:
        if tables.targets is None:
            raise ValueError(missing)
        encoding = NodeEncoding.fit(tables, features=features, max_degree=max_degree)
    try:
        return build_dataset(tables, name=name, encoding=encoding)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read(source: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None) -> tuple[str, GraphTables, str]:
    """Return the name and graphs of a source, and the error message for missing targets."""
    path = Path(source).expanduser()
    if not _is_name(source) and is_graphml_folder(path):
        return path.resolve().name, read_graphml(path), f"{path}: the graphs have no target"
    if is_table(source):
        return path.stem, read_graph_parquet(path), f"{path}: the graphs have no target"
    if str(source).endswith(SUFFIXES):
        return JsonLines(path).name, read_json_lines(path), f'{path}: the graphs have no "target"'
    files = find_tables(source, data_dir)
    return files.name, cached_tables(files), missing_targets(files)


def _read_table(path: Path, columns: TableColumns | None, *, labelled: bool) -> tuple[str, GraphTables, str]:
    columns = named_columns(path, columns)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    tables, skipped = read_molecules(path, columns, labelled=labelled)
    if skipped is not None:
        warnings.warn(f"{path.name}: {skipped}", stacklevel=3)
    return path.stem, tables, f"{path}: the rows have no target"


def named_columns(path: Path, columns: TableColumns | None) -> TableColumns:
    """Return the columns of a table of molecules; raise ``ValueError`` if they are not given."""
    if columns is None:
        raise ValueError(f"{path}: specify the column of SMILES strings (columns=, --smiles)")
    return columns


def is_table(source: str | os.PathLike[str]) -> bool:
    """Whether a source is a table, by its file name."""
    return str(source).endswith(TABLES)


def is_path(source: str) -> bool:
    """Whether ``source`` is the path of a dataset rather than its name."""
    separators = [os.sep, os.altsep] if os.altsep else [os.sep]
    return source.endswith((".zip", *SUFFIXES, *TABLES)) or any(separator in source for separator in separators)


def open_source(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    columns: TableColumns | None = None,
) -> GraphSource:
    """Open the graphs of a name or path, as in :func:`load`, to read them in chunks; targets may be missing."""
    path = Path(source).expanduser()
    if not _is_name(source) and is_graphml_folder(path):
        return TablesSource(path.resolve().name, read_graphml(path))
    if is_table(source) or str(source).endswith(SUFFIXES):
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        if is_graph_parquet(path):
            return GraphParquet(path)
        return MoleculeSource(path, named_columns(path, columns)) if is_table(source) else JsonLines(path)
    return TuSource(find_tables(source, data_dir))


def find_tables(source: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None) -> TableFiles:
    """Find the files in TU format of a name or path, as in :func:`load`."""
    if _is_name(source):
        return _find(full_name(str(source)), folder=data_folder(data_dir))
    return open_files(source)


def _is_name(source: str | os.PathLike[str]) -> bool:
    return isinstance(source, str) and not is_path(source)


def _find(name: str, *, folder: Path) -> TableFiles:
    archive = folder / f"{name}.zip"
    if archive.is_file():
        return ZipFiles(archive)
    for place in (folder, folder / name, folder / name / "raw"):  # the last is the layout of PyTorch Geometric
        if (place / f"{name}_A.txt").is_file():
            return FolderFiles(place, name=name)
    if name not in CONTENT_SHA256:
        raise FileNotFoundError(
            f"no dataset {name!r}: {folder} has neither {name}.zip nor {name}_A.txt, and only"
            f" {', '.join(CONTENT_SHA256)} can be downloaded; for your own folder, use a path:"
            f" ./{name}"
        )
    return ZipFiles(download(name, folder=folder))

"""``tfgw datasets``."""

import argparse
from pathlib import Path
from typing import Any

from tfgw.cli.output import CommandResult, table
from tfgw.cli.source import Source
from tfgw.datasets import Statistics, statistics
from tfgw.datasets.graph_parquet import is_graph_parquet
from tfgw.datasets.listing import datasets_in
from tfgw.datasets.loading import is_table
from tfgw.datasets.paths import data_folder
from tfgw.datasets.synthetic import GENERATORS
from tfgw.datasets.table_file import column_names
from tfgw.datasets.tu_catalog import CONTENT_SHA256

COLUMNS = {
    "dataset": "name",
    "graphs": "graphs",
    "classes": "classes",
    "features": "features",
    "mean nodes": "mean_nodes",
    "median": "median_nodes",
    "max": "max_nodes",
    "mean edges": "mean_edges",
    "disconnected": "disconnected",
}
"""Column headers and the statistics that they show."""


def run(args: argparse.Namespace) -> CommandResult:
    """Describe the given datasets, or all datasets in the data folder."""
    if args.names:
        found = [statistics(_source(args, name).load()) for name in args.names]
        return CommandResult([one._asdict() for one in found], _table(found))
    folder = data_folder(args.data_dir)
    paths = datasets_in(folder) if args.data_dir is not None or folder.is_dir() else []
    names = [*(() if args.data_dir is not None else GENERATORS), *map(str, paths)]
    described = [_described(args, name) for name in names]
    found = [one for one in described if isinstance(one, Statistics)]
    notes = [one for one in described if not isinstance(one, Statistics)]
    text = _table(found) if found else f"no dataset in {folder}"
    text += "".join(f"\n{note['path']}: {note['note']}" for note in notes)
    missing = [name for name in CONTENT_SHA256 if not _is_local(name, folder)]
    if missing:
        text += f"\n\nnot in {folder}: {', '.join(missing)} (use 'tfgw datasets NAME' to download one)"
    return CommandResult([one._asdict() if isinstance(one, Statistics) else one for one in described], text)


def _source(args: argparse.Namespace, name: str) -> Source:
    data_dir = args.data_dir and str(args.data_dir)
    columns = {"smiles": args.smiles, "target": args.target, "id": args.id} if is_table(name) else {}
    return Source(dataset=name, data_dir=data_dir, features=args.features, **columns)


def _described(args: argparse.Namespace, name: str) -> Statistics | dict[str, Any]:
    """Return statistics, or a note if one of several files or folders cannot be loaded."""
    try:
        if is_table(name) and not is_graph_parquet(Path(name)) and args.smiles is None:
            columns = column_names(Path(name))
            return {"path": name, "columns": columns, "note": f"a table with columns {', '.join(columns)}"}
        return statistics(_source(args, name).load())
    except (ValueError, OSError, ImportError) as error:
        return {"path": name, "note": f"cannot be loaded, {error}"}


def _table(found: list[Statistics]) -> str:
    return table([list(COLUMNS), *([getattr(one, field) for field in COLUMNS.values()] for one in found)])


def _is_local(name: str, folder: Path) -> bool:
    return (folder / f"{name}.zip").is_file() or (folder / name).is_dir() or (folder / f"{name}_A.txt").is_file()

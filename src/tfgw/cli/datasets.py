"""``tfgw datasets``."""

import argparse
from pathlib import Path

from tfgw.cli.output import Answer, table
from tfgw.cli.source import SYNTHETIC, Source
from tfgw.datasets import statistics
from tfgw.datasets.catalog import CONTENT_SHA256
from tfgw.datasets.paths import data_folder

HEADER = (
    "dataset",
    "graphs",
    "classes",
    "features",
    "mean nodes",
    "median",
    "max",
    "mean edges",
    "disconnected",
)


def run(args: argparse.Namespace) -> Answer:
    """Statistics of the named datasets, or of all that are at hand."""
    folder = data_folder(args.data_dir)
    missing = [] if args.names else [name for name in CONTENT_SHA256 if not _is_at_hand(name, folder)]
    names = args.names or [*SYNTHETIC, *(name for name in CONTENT_SHA256 if name not in missing)]
    found = []
    for name in names:
        source = Source(
            dataset=name,
            data_dir=args.data_dir and str(args.data_dir),
            features=args.features,
            smiles=args.smiles,
            target=args.target,
            id=args.id,
        )
        found.append(statistics(source.load()))
    rows = [
        (
            s.name,
            s.graphs,
            s.classes,
            s.features,
            s.mean_nodes,
            s.median_nodes,
            s.max_nodes,
            s.mean_edges,
            s.disconnected,
        )
        for s in found
    ]
    text = table([HEADER, *rows])
    if missing:
        text += f"\n\nnot in {folder}: {', '.join(missing)} ('tfgw datasets NAME' downloads one)"
    return Answer([s._asdict() for s in found], text)


def _is_at_hand(name: str, folder: Path) -> bool:
    return (folder / f"{name}.zip").is_file() or (folder / name).is_dir() or (folder / f"{name}_A.txt").is_file()

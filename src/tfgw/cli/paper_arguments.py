"""The options of ``tfgw paper``."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from tfgw.cli.number_arguments import count

EXPERIMENT_HELP = "a table or figure ('tfgw paper list' names them), or the path of a .toml file of your own"


def add_paper_commands(parser: argparse.ArgumentParser) -> None:
    """``list``, ``run``, ``show``, ``plot`` and ``pack``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _command(commands, "list", "name the tables and figures, their datasets and models")
    _run(_command(commands, "run", "run the cells of a table or figure that have no record yet"))
    _show(_command(commands, "show", "print a table, the paper's figures and ours side by side"))
    _plot(_command(commands, "plot", "draw a figure from its records"))
    pack = _command(commands, "pack", "gather the records of each dataset and model in one file")
    _results(pack)
    pack.add_argument(
        "--merge-from",
        "--take-over",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="first add the records of this folder; may be repeated",
    )


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(command=lambda args: getattr(import_module("tfgw.cli.paper"), f"{name}_")(args))
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, and nothing else")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    _what(parser)
    where = parser.add_argument_group("where")
    where.add_argument("--jobs", type=count(1), metavar="N", help="cells at the same time (all cores; what fits GPUs)")
    where.add_argument("--engine", choices=["local", "ray"], default="local", help="this machine, or a Ray cluster")
    where.add_argument("--address", metavar="HOST:PORT", help="of the Ray cluster, or 'auto' (default: start one here)")
    where.add_argument("--accelerator", choices=["auto", "cpu", "cuda"], default="auto", help="where to train (auto)")
    where.add_argument("--per-gpu", type=count(1), metavar="N", help="cells that share a GPU (as many as fit)")
    parser.add_argument("--retry-failed", action="store_true", help="try cells again that failed")
    parser.add_argument("--dry-run", action="store_true", help="say how many cells there are, and how long they take")


def _show(parser: argparse.ArgumentParser) -> None:
    _what(parser)
    parser.add_argument("--markdown", action="store_true", help="as Markdown")
    parser.add_argument("--done", action="store_true", help="only rows of which cells are done")


def _plot(parser: argparse.ArgumentParser) -> None:
    _what(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="ends in .png, .svg or .pdf (FIGURE.png)")


def _what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help=EXPERIMENT_HELP)
    parser.add_argument("--dataset", action="append", metavar="NAME", help="only this one; may be repeated (all)")
    parser.add_argument("--model", action="append", metavar="NAME", help="only this one; may be repeated (all)")
    parser.add_argument(
        "--preset",
        choices=["smoke", "quick", "full"],
        default="quick",
        help="seconds; one configuration per model; the paper's grid (quick)",
    )
    parser.add_argument("--protocol", metavar="NAME", help="fair or paper, for real data (fair)")
    parser.add_argument("--group-isomorphic", action="store_true", help="keep isomorphic graphs together in splits")
    parser.add_argument(
        "--splits", type=Path, metavar="FILE|FOLDER", help="published splits for 'fair': JSON, DATASET_splits.json"
    )
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="where names are looked up (TFGW_DATA)")
    _results(parser)


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="FOLDER", help="where records are kept (results)"
    )

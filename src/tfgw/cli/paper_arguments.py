"""The options of ``tfgw paper``."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from tfgw.cli.number_arguments import count

EXPERIMENT_HELP = "a table or figure (see 'tfgw paper list'), or the path of your own .toml file"


def add_paper_commands(parser: argparse.ArgumentParser) -> None:
    """Add ``list``, ``run``, ``check``, ``show``, ``compare``, ``plot``, ``report`` and ``pack``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _command(commands, "list", "list_experiments", "list the tables and figures with their protocols")
    _run(_command(commands, "run", "run_cells", "run the cells of a table or figure that have no record yet"))
    _check(
        _command(
            commands,
            "check",
            "check_cells",
            "run random finished cells again and compare the results with their records",
        )
    )
    _show(_command(commands, "show", "show_table", "print a table with the paper's results next to ours"))
    _compare(_command(commands, "compare", "compare_models", "compare models with paired tests and average ranks"))
    _plot(_command(commands, "plot", "plot_figure", "plot a figure from its records"))
    _report(_command(commands, "report", "write_report", "write all tables and figures to one HTML page"))
    pack = _command(commands, "pack", "pack_records", "collect the records of each dataset and model in one file")
    _results(pack)
    pack.add_argument(
        "--merge-from",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="also add the records of this folder; may be repeated",
    )


def _command(commands: Any, name: str, function: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(command=lambda args: getattr(import_module("tfgw.cli.paper"), function)(args))
    parser.add_argument("--json", action="store_true", help="print the result as JSON only")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    _trust(parser)
    resources = _resources(parser)
    resources.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="run on this machine or on a Ray cluster (default: %(default)s)",
    )
    resources.add_argument(
        "--address", metavar="HOST:PORT", help="address of the Ray cluster, or 'auto' (default: start a local one)"
    )
    parser.add_argument("--retry-failed", action="store_true", help="run failed cells again")
    parser.add_argument(
        "--changed", action="store_true", help="run cells again that are older than a change of the code (marked †)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the number of missing cells and the estimated time"
    )


def _check(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    _trust(parser)
    _resources(parser)
    parser.add_argument("--cells", type=count(1), default=3, metavar="N", help="number of cells (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="random seed of the choice (default: %(default)s)"
    )


def _resources(parser: argparse.ArgumentParser) -> Any:
    resources = parser.add_argument_group("resources")
    resources.add_argument(
        "--jobs",
        type=count(1),
        metavar="N",
        help="run N cells at a time (default: one per core, or as many as fit on the GPUs)",
    )
    resources.add_argument(
        "--accelerator",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="train on the CPU or a GPU (default: %(default)s)",
    )
    resources.add_argument(
        "--per-gpu", type=count(1), metavar="N", help="let N cells share a GPU (default: as many as fit)"
    )
    return resources


def _show(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--done", action="store_true", help="show only rows with finished cells")


def _compare(parser: argparse.ArgumentParser) -> None:
    _selection(parser, by_model=False)
    text = "models to compare; the first is compared with each of the others (default: all that have records)"
    parser.add_argument("models", nargs="*", metavar="MODEL", help=text)
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    text = "plot a critical-difference diagram to this .png, .svg or .pdf file"
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)


def _plot(parser: argparse.ArgumentParser) -> None:
    _selection(parser)
    _trust(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=".png, .svg or .pdf file to write (default: NAME.png)"
    )


def _report(parser: argparse.ArgumentParser) -> None:
    _preset(parser)
    _data_folder(parser)
    _results(parser)
    text = "file to write (default: report.html in the folder of the records)"
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)


def _selection(parser: argparse.ArgumentParser, *, by_model: bool = True) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help=EXPERIMENT_HELP)
    parser.add_argument(
        "--dataset", action="append", metavar="NAME", help="only this dataset; may be repeated (default: all)"
    )
    if by_model:
        parser.add_argument(
            "--model", action="append", metavar="NAME", help="only this model; may be repeated (default: all)"
        )
    _preset(parser)
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="protocol of the experiment, see 'tfgw paper list' (default: the first)",
    )
    parser.add_argument(
        "--group-isomorphic", action="store_true", help="keep isomorphic graphs on the same side of every split"
    )
    splits = parser.add_mutually_exclusive_group()
    splits.add_argument(
        "--splits",
        type=Path,
        metavar="FILE|FOLDER",
        help="published splits for the protocol 'fair': a JSON file, or a folder of files DATASET_splits.json (datasets"
        " without one have folds of their own); required to run cells on splits that the experiment names",
    )
    splits.add_argument(
        "--own-folds", action="store_true", help="use folds of our own even if the experiment names published splits"
    )
    _data_folder(parser)
    _results(parser)


def _trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trust", action="store_true", help="allow the .toml file to run code from outside tfgw")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        choices=["smoke", "quick", "full"],
        default="quick",
        help="smoke takes seconds, quick has one configuration per model, full is the paper's grid"
        " (default: %(default)s)",
    )


def _data_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="FOLDER",
        help="folder of the datasets (default: environment variable TFGW_DATA, else the user's cache folder)",
    )


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="folder of the records (default: %(default)s)",
    )

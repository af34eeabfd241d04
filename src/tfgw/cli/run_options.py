"""The options of a run of ``tfgw train`` as JSON data, which its folder stores."""

import argparse
from collections.abc import Mapping
from typing import Any

from tfgw.cli.arguments import given_options
from tfgw.cli.model_choice import SOURCE_OPTIONS
from tfgw.cli.settings import with_recipe
from tfgw.cli.source import Source, portable
from tfgw.datasets.loading import is_path
from tfgw.datasets.paths import data_folder
from tfgw.datasets.synthetic import GENERATORS

_NOT_STORED = ("command", "json", "debug", "output", "resume", "report", "arguments")


def run_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a new run as JSON data."""
    options = {name: value for name, value in vars(args).items() if name not in _NOT_STORED}
    return with_recipe(options, dataset=args.dataset) | _data_location(options)


def given_run_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the command line sets explicitly as JSON data."""
    given = {name: value for name, value in given_options(args.arguments).items() if name not in _NOT_STORED}
    return given | {name: value for name, value in _data_location(vars(args)).items() if name in given}


def _data_location(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the location of the data, valid in any working directory and environment."""
    dataset, data_dir = portable(options["dataset"]), options["data_dir"]
    if data_dir is None and (dataset in GENERATORS or is_path(dataset)):
        return {"dataset": dataset, "data_dir": None}
    return {"dataset": dataset, "data_dir": str(data_folder(data_dir).resolve())}


def source_of(options: Mapping[str, Any]) -> Source:
    """Return the dataset and split of a run."""
    known = {name: options[name] for name in SOURCE_OPTIONS if name in options}
    return Source(**known, values=options["task"] == "regression")

"""Choose the kind of model for ``tfgw train --model auto``: a kernel machine where it takes minutes, else a network."""

import argparse
from typing import NamedTuple

from tfgw.cli.arguments import given_options
from tfgw.cli.settings import GENERATED
from tfgw.cli.source import Source
from tfgw.train import Parts
from tfgw.train.kernel_pipeline import MAX_GRAPHS
from tfgw.train.kernel_time import AUTO_SECONDS, estimated_seconds

SOURCE_OPTIONS = ("dataset", "data_dir", "features", "validation", "test", "seed", "smiles", "target", "id")

KERNEL_OPTIONS = {*SOURCE_OPTIONS, "model", "task", "standardize", "canonical_order", "starts", "class_weight",
                  "accelerator", "output", "json", "debug", "report", "arguments", "command"}  # fmt: skip
KERNEL_OPTIONS.remove("validation")
"""Options of ``tfgw train`` that a kernel machine supports. Nothing is selected on validation graphs."""


class Choice(NamedTuple):
    """The model to train, why, and its graphs if they were loaded."""

    model: str
    reason: str
    parts: Parts | None = None


def network_options(args: argparse.Namespace) -> list[str]:
    """Return the given options that only networks have."""
    names = sorted(given_options(args.arguments).keys() - KERNEL_OPTIONS)
    return [f"--{name.replace('_', '-')}" for name in names]


def choose_model(args: argparse.Namespace, source: Source) -> Choice:
    """Choose by options, then by the estimated time. ``source`` must not hold out validation graphs."""
    if args.dataset in GENERATED:
        return Choice("network", f"{args.dataset} has settings for networks")
    if options := network_options(args):
        return Choice("network", f"{options[0]} is an option of networks")
    if args.task == "multilabel":
        return Choice("network", "kernel machines do not predict several labels")
    parts = source.parts()
    graphs = len(parts.train)
    if graphs > MAX_GRAPHS:
        return Choice("network", f"there are more than {MAX_GRAPHS:,} training graphs ({graphs:,})", parts)
    seconds, limit = estimated_seconds(parts.train), AUTO_SECONDS // 60
    minutes = f"about {seconds / 60:,.0f} min" if seconds >= 60 else "less than 1 min"
    if seconds > AUTO_SECONDS:
        return Choice(
            "network",
            f"comparing all {graphs:,} training graphs would take {minutes} of CPU time, more than {limit} min",
            parts,
        )
    return Choice(
        "kernel", f"comparing all {graphs:,} training graphs takes {minutes} of CPU time (limit: {limit} min)", parts
    )


def describe(choice: Choice) -> str:
    """Say which model is trained, why, and how to get the other."""
    names = {"kernel": "a kernel machine", "network": "a network"}
    other = next(model for model in names if model != choice.model)
    return f"training {names[choice.model]}, because {choice.reason}; --model {other} trains {names[other]}"

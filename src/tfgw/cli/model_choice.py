"""Choose the kind of model for ``tfgw train --model auto``: a kernel machine where it takes minutes, else a network."""

import argparse
from typing import NamedTuple

from tfgw.cli.arguments import given_options
from tfgw.cli.settings import GENERATED
from tfgw.cli.source import Source
from tfgw.datasets import GraphDataset
from tfgw.train import Parts
from tfgw.train.kernel_pipeline import AUTO_NODES, MAX_GRAPHS

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
    """Choose by options, then by the number of graphs and nodes. ``source`` must not hold out validation graphs."""
    if args.dataset in GENERATED:
        return Choice("network", f"{args.dataset} has settings for networks")
    if options := network_options(args):
        return Choice("network", f"{options[0]} is an option of networks")
    if args.task == "multilabel":
        return Choice("network", "kernel machines do not predict several labels")
    parts = source.parts()
    graphs, nodes = len(parts.train), _nodes(parts.train)
    size = f"the {graphs:,} training graphs have {nodes:,} nodes in total"
    if graphs > MAX_GRAPHS:
        return Choice("network", f"there are more than {MAX_GRAPHS:,} training graphs ({graphs:,})", parts)
    if nodes > AUTO_NODES:
        return Choice("network", f"{size}, more than {AUTO_NODES:,}", parts)
    return Choice("kernel", f"{size}, at most {AUTO_NODES:,}", parts)


def describe(choice: Choice) -> str:
    """Say which model is trained, why, and how to get the other."""
    names = {"kernel": "a kernel machine", "network": "a network"}
    other = next(model for model in names if model != choice.model)
    return f"training {names[choice.model]}, because {choice.reason}; --model {other} trains {names[other]}"


def _nodes(train: GraphDataset) -> int:
    sizes = train.slices["x"].diff()
    return int(sizes[list(train.indices())].sum())

"""The model and the graphs that a command was given."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfgw.cli.source import Source, portable
from tfgw.cli.train import MODEL_FILE
from tfgw.datasets import GraphDataset
from tfgw.train import TrainedModel, load_model


def find_model(args: argparse.Namespace) -> TrainedModel:
    """The model that was named by its file or by the folder of its run."""
    path: Path = args.model
    return load_model(path / MODEL_FILE if path.is_dir() else path)


def find_graphs(args: argparse.Namespace, trained: TrainedModel, *, whole: bool | None = None) -> GraphDataset:
    """Graphs of the dataset that was named, or of the model's own run, read as the model takes them.

    Args:
        args: Options of the command.
        trained: The model.
        whole: Whether to take all graphs of the run's own dataset, rather than its test graphs; by default, if it was
            named.
    """
    own = Source(**trained.source) if "dataset" in trained.source else None
    if own is not None and args.data_dir is not None:
        own = replace(own, data_dir=str(args.data_dir))
    if own is not None and (args.dataset is None or own.is_of(args.dataset)):
        whole = args.dataset is not None if whole is None else whole
        return own.load(trained.encoding) if whole else _test_graphs(own, trained)
    if args.dataset is None:
        raise ValueError("--dataset: missing, and the model was not trained by 'tfgw train'")
    other = replace(own or Source(dataset="", data_dir=args.data_dir), dataset=portable(args.dataset))
    return other.load() if other.is_synthetic else trained.load(other.dataset, data_dir=other.data_dir)


def _test_graphs(own: Source, trained: TrainedModel) -> GraphDataset:
    test = own.parts(trained.encoding).test
    if test is None:
        raise ValueError("the model's own run has no test graphs; name others with --dataset")
    return test


def unseen_labels(graphs: GraphDataset) -> dict[str, Any] | None:
    """What ``--json`` says of labels that the model has not seen."""
    return None if graphs.unseen is None else graphs.unseen._asdict()

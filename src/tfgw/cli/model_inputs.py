"""The model and the graphs that a command was given."""

import argparse
from dataclasses import replace
from pathlib import Path

from tfgw.cli.source import Source, portable
from tfgw.cli.train import MODEL_FILE
from tfgw.datasets import GraphDataset
from tfgw.train import TrainedModel, load_model


def find_model(args: argparse.Namespace) -> TrainedModel:
    """The model that was named by its file or by the folder of its run."""
    path: Path = args.model
    return load_model(path / MODEL_FILE if path.is_dir() else path)


def find_graphs(args: argparse.Namespace, trained: TrainedModel) -> GraphDataset:
    """All graphs of the dataset that was named; else the test graphs of the model's own run."""
    source = Source(**trained.source)
    if args.data_dir is not None:
        source = replace(source, data_dir=str(args.data_dir))
    if args.dataset is not None:
        return replace(source, dataset=portable(args.dataset)).load()
    test = source.parts().test
    if test is None:
        raise ValueError("--dataset: missing, and the model's own run has no test graphs")
    return test

"""Find the model and the graphs that a command's options name."""

import argparse
from dataclasses import replace
from typing import Any

from tfgw.cli.file_names import model_path
from tfgw.cli.source import Source, parts_by_name, portable
from tfgw.datasets import GraphDataset, TableColumns
from tfgw.datasets.graph_source import GraphSource
from tfgw.datasets.loading import open_source
from tfgw.train import TrainedModel, load_model


def find_model(args: argparse.Namespace) -> TrainedModel:
    """Load the model, given as a file or as the folder of its run."""
    return load_model(model_path(args))


def find_source(args: argparse.Namespace, trained: TrainedModel) -> GraphSource | GraphDataset:
    """Return the input graphs: a file to read in chunks, or the test graphs of the model's run."""
    if args.dataset is None or trained.encoding is None:
        return find_graphs(args, trained)
    source = _named_source(args, _own_source(args, trained))
    if source.is_synthetic:
        return find_graphs(args, trained)
    return open_source(source.dataset, data_dir=source.data_dir, columns=_columns(args, trained))


def find_graphs(args: argparse.Namespace, trained: TrainedModel, *, whole: bool | None = None) -> GraphDataset:
    """Load the given dataset, or the one of the model's run, with the node encoding of the model.

    Args:
        args: Options of the command.
        trained: The model.
        whole: Whether to use all graphs of the run's dataset instead of its test graphs (default: only if ``--dataset``
            names it).
    """
    own, is_named = _own_source(args, trained), args.dataset is not None
    take_all = is_named if whole is None else whole
    if own is not None and (not is_named or own.is_of(args.dataset)):
        graphs, is_own = own.load(trained.encoding, labelled=not take_all), True
    elif is_named:
        graphs = _other_graphs(args, trained, own)
        is_own = own is not None and own.content == graphs.content_digest()  # the same dataset under another path
    else:
        raise ValueError("--dataset: required, because the model was not trained by 'tfgw train'")
    if own is None or not is_own or own.is_synthetic or take_all:
        return graphs
    test = own.split(graphs).test
    if test is None:
        raise ValueError("the model's run has no test graphs; use --dataset")
    return test


def find_parts(args: argparse.Namespace, trained: TrainedModel) -> dict[str, GraphDataset]:
    """Return the graphs of a report by part: those of the model's run, or the given dataset."""
    own = _own_source(args, trained)
    if own is None or (args.dataset is not None and not own.is_of(args.dataset)):
        return {"given": find_graphs(args, trained)}
    return parts_by_name(own.parts() if own.is_synthetic else own.split(own.load(trained.encoding)))


def _own_source(args: argparse.Namespace, trained: TrainedModel) -> Source | None:
    if "dataset" not in trained.source:
        return None
    own = Source(**trained.source)
    return own if args.data_dir is None else replace(own, data_dir=str(args.data_dir))


def _named_source(args: argparse.Namespace, own: Source | None) -> Source:
    """Return the given dataset; its folder defaults to that of the model's run."""
    return replace(own or Source(dataset="", data_dir=args.data_dir), dataset=portable(args.dataset))


def _other_graphs(args: argparse.Namespace, trained: TrainedModel, own: Source | None) -> GraphDataset:
    source = _named_source(args, own)
    if source.is_synthetic:
        return source.load()
    return trained.load(source.dataset, data_dir=source.data_dir, columns=_columns(args, trained))


def _columns(args: argparse.Namespace, trained: TrainedModel) -> TableColumns | None:
    """Return the columns of a table: the given names, else those of the table that the model was trained on."""
    given = {"smiles": args.smiles, "target": args.target, "identifier": args.id}
    changed = {what: name for what, name in given.items() if name is not None}
    if trained.columns is not None:
        return replace(trained.columns, **changed)
    return TableColumns(**changed) if "smiles" in changed else None


def unseen_labels(graphs: GraphDataset) -> dict[str, Any] | None:
    """Return the entry of ``--json`` about labels that the model has not seen."""
    return None if graphs.unseen is None else graphs.unseen.as_dict()

"""Predictions and embeddings of any number of graphs: read in chunks, written in chunks, resumable."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from tfgw import __version__
from tfgw.cli.file_names import model_path
from tfgw.cli.model_inputs import find_model, find_source
from tfgw.cli.resumable_output import check_output, open_output
from tfgw.datasets import GraphDataset, UnseenLabels
from tfgw.train import GraphStream, PreparedGraphs, StreamTally, TrainedModel
from tfgw.train.config import device_of
from tfgw.train.output_columns import Columns


class StreamResult(NamedTuple):
    """The results of a command: all columns, or only the number of graphs if they were written to a file."""

    dataset: str
    unseen: UnseenLabels | None
    num_graphs: int
    columns: Columns

    @property
    def about(self) -> dict[str, Any]:
        """The entries of ``--json`` about the graphs."""
        return {"dataset": self.dataset, "unseen_labels": None if self.unseen is None else self.unseen.as_dict()}


def process_graphs(
    args: argparse.Namespace,
    command: str,
    method: str,
    types: Callable[[TrainedModel], Mapping[str, type]],
) -> StreamResult:
    """Compute the results for all input graphs, in memory or, with ``--output``, in a file.

    Args:
        args: Options of the command.
        command: Name of the command.
        method: Name of the method of the model that computes the columns of a chunk.
        types: Returns the types of columns that may be empty, given the model.
    """
    check_output(args.output)
    trained = find_model(args)
    source = find_source(args, trained)
    device = device_of(args.accelerator)
    trained.model.to(device)
    options = {"batch_size": args.batch_size, "workers": args.workers}
    if args.output is None:
        stream = trained.stream(source, **options)
        chunks = list(_result_columns(args, stream, trained, method))
        joined = {name: [value for chunk in chunks for value in chunk[name]] for name in chunks[0]}
        return StreamResult(stream.name, stream.unseen, stream.tally.graphs, joined)
    identity = {
        "command": command,
        "model": _file_digest(model_path(args)),
        "source": source.content_digest() if isinstance(source, GraphDataset) else source.fingerprint(),
        "batch_size": args.batch_size,
        "device": device,
        "version": __version__,
    }
    with open_output(args.output, identity, types=types(trained)) as output:
        stream = trained.stream(source, tally=StreamTally.from_dict(output.notes), **options)
        for columns in _result_columns(args, stream, trained, method):
            output.write(columns, stream.tally.as_dict())
    return StreamResult(stream.name, stream.unseen, stream.tally.graphs, {})


def _result_columns(
    args: argparse.Namespace, stream: GraphStream, trained: TrainedModel, method: str
) -> Iterator[Columns]:
    """Yield the columns of each chunk, and show a progress bar."""
    chunks: Iterable[PreparedGraphs] = stream
    if args.engine == "ray":
        from tfgw.train.ray_engine import process_on_ray

        device = next(trained.model.parameters()).device.type
        trained.model.cpu()  # the model is sent to the cluster; its workers move it to their device
        chunks = stream.track(process_on_ray(stream, trained, method, device=device, address=args.address))
    disabled = not sys.stderr.isatty()
    total, done = None if disabled else stream.count(), stream.tally.records
    with tqdm(total=total, initial=done, unit=" graphs", unit_scale=True, disable=disabled) as bar:
        for graphs in chunks:
            if graphs.columns is None:
                yield getattr(trained, method)(graphs)
            else:
                yield graphs.columns | {"graph": list(graphs.positions)}
            bar.update(graphs.records)


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""Stream the graphs of a file to a model: chunks are prepared on all cores while the solver runs.

source ─ chunks, in a thread ─▶ parse, encode, canonical order: threads or processes ─▶ in order ─▶ the model, here
"""

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypedDict, TypeGuard, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, NodeEncoding, UnseenLabels, as_graph_dataset
from tfgw.datasets.graph_dataset import build_dataset, warn_of_unseen
from tfgw.datasets.graph_source import Chunk, GraphSource
from tfgw.datasets.molecule_table import MoleculeRows, SkippedRows
from tfgw.train.batches import OPTIONAL_INPUTS
from tfgw.train.ordered_pool import ordered_map
from tfgw.train.output_columns import Columns
from tfgw.train.preprocessing import Preprocessing

_THREADS_FOR_PYTHON = 3
"""With more workers, Python code runs in processes. Each takes seconds to start and about 300 MB of memory. On few
cores, which the solver keeps busy, threads are as fast, because parsing JSON takes a third of the time of a solve."""


class StreamOptions(TypedDict, total=False):
    """Options of :class:`GraphStream`."""

    batch_size: int
    workers: int | None
    tally: "StreamTally"


class PreparedGraphs(NamedTuple):
    """Consecutive graphs of a stream as plain arrays, which can be sent between processes.

    ``positions`` is empty if they follow the positions of the previous chunk.
    """

    records: int  # number of lines, rows or graphs of the source
    positions: Sequence[int]
    identifiers: list[Any] | None
    targets: list[Any] | None  # in the form of the source
    unseen: UnseenLabels | None
    skipped: SkippedRows | None
    arrays: dict[str, np.ndarray]
    slices: dict[str, np.ndarray]
    warned: list[str]
    columns: Columns | None = None  # the results, if they were computed elsewhere

    @property
    def dataset(self) -> GraphDataset:
        """The graphs as input for the model."""
        tensors = {key: torch.from_numpy(array) for key, array in self.arrays.items()}
        return GraphDataset(tensors, {key: torch.from_numpy(value) for key, value in self.slices.items()}, name="chunk")

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return len(self.slices["x"]) - 1 if self.slices else 0

    @property
    def num_nodes(self) -> int:
        """Total number of nodes."""
        return len(self.arrays["x"]) if self.arrays else 0


class DatasetChunk(NamedTuple):
    """Graphs that are already encoded."""

    dataset: GraphDataset


@dataclass
class StreamTally:
    """Progress of a stream, with counts of unknown labels and unreadable rows."""

    records: int = 0
    graphs: int = 0
    nodes: int = 0
    found: UnseenLabels | None = None
    rows: SkippedRows | None = None

    def add(self, chunk: PreparedGraphs) -> None:
        """Add the counts of a chunk."""
        self.records += chunk.records
        self.graphs += len(chunk.positions)
        self.nodes += chunk.num_nodes
        if chunk.unseen is not None:
            self.found = chunk.unseen if self.found is None else self.found.merged(chunk.unseen)
        if chunk.skipped is not None:
            self.rows = chunk.skipped if self.rows is None else self.rows.merged(chunk.skipped)

    @property
    def unseen(self) -> UnseenLabels | None:
        """Labels that the model has not seen, or ``None`` if there are none."""
        return None if self.found is None else self.found._replace(of_nodes=self.nodes)

    @property
    def skipped(self) -> SkippedRows | None:
        """Rows that could not be read, or ``None`` if there are none."""
        return self.rows if self.rows is not None and self.rows.unreadable else None

    def as_dict(self) -> dict[str, Any]:
        """Return the progress as JSON data."""
        found = None if self.found is None else self.found._asdict()
        return asdict(self) | {"found": found, "rows": None if self.rows is None else self.rows._asdict()}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "StreamTally":
        """Create the progress from the data of :meth:`as_dict`."""
        if not entries:
            return cls()
        found, rows = entries["found"], entries["rows"]
        return cls(
            records=entries["records"],
            graphs=entries["graphs"],
            nodes=entries["nodes"],
            found=None if found is None else UnseenLabels(**found | {"labels": tuple(found["labels"])}),
            rows=None if rows is None else SkippedRows(**rows | {"reasons": tuple(rows["reasons"])}),
        )


@dataclass(kw_only=True)
class GraphStream:
    """The graphs of a source, prepared for a model. It can be iterated over once.

    Args:
        source: A source of files, a dataset with the encoding of the model, or any iterable of PyTorch Geometric graphs
            with the features that the model expects.
        encoding: Node encoding of the model; required only for files.
        preprocessing: Preprocessing of the model.
        batch_size: Number of graphs per chunk. Larger chunks need more memory and are hardly faster.
        workers: Number of threads that prepare graphs (processes, if there are more than three and parsing is Python
            code). ``None`` means one per core, and 0 prepares graphs in the calling thread.
        tally: Progress of an earlier stream of the same graphs. The graphs that it has read are skipped.
    """

    source: GraphSource | GraphDataset | Iterable[Data]
    encoding: NodeEncoding | None
    preprocessing: Preprocessing
    batch_size: int = 1024
    workers: int | None = None
    tally: StreamTally = field(default_factory=StreamTally)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size: must be at least 1, got {self.batch_size}")
        if self.workers is not None and self.workers < 0:
            raise ValueError(f"workers: must not be negative, got {self.workers}")

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return getattr(self.source, "name", "graphs")

    @property
    def unseen(self) -> UnseenLabels | None:
        """Labels in the graphs so far that the model has not seen."""
        return self.source.unseen if isinstance(self.source, GraphDataset) else self.tally.unseen

    def count(self) -> int | None:
        """Return the number of records of the source, or ``None`` if it is unknown."""
        if isinstance(self.source, GraphDataset):
            return len(self.source)
        return self.source.count() if _is_files(self.source) else None

    def __iter__(self) -> Iterator[PreparedGraphs]:
        prepare = partial(prepare_graphs, name=self.name, encoding=self.encoding, preprocessing=self.preprocessing)
        workers = (os.cpu_count() or 1) if self.workers is None else self.workers
        is_python = _is_files(self.source) and self.source.parses_in_python
        in_processes = is_python and workers > _THREADS_FOR_PYTHON
        if in_processes:
            prepare = partial(_with_warnings, prepare)
        yield from self.track(ordered_map(prepare, self.chunks(), workers=workers, processes=in_processes))

    def track(self, prepared: Iterable[PreparedGraphs]) -> Iterator[PreparedGraphs]:
        """Yield prepared chunks with their positions, update the tally, and run the final checks."""
        for found in prepared:
            for text in found.warned:
                warnings.warn(text, stacklevel=2)
            graphs = found if found.positions else found._replace(positions=self._next_positions(found))
            self.tally.add(graphs)
            if graphs.positions:
                yield graphs
        self._check()

    def _next_positions(self, graphs: PreparedGraphs) -> range:
        return range(self.tally.graphs, self.tally.graphs + graphs.num_graphs)

    def _check(self) -> None:
        """Run the checks that need all graphs, as :func:`tfgw.datasets.load` does."""
        if not self.tally.graphs:
            reason = "" if self.tally.skipped is None else f"; {self.tally.skipped}"
            raise ValueError(f"{self.name}: no graphs{reason}")
        if isinstance(self.source, GraphDataset):
            return  # already checked when it was loaded
        if self.tally.unseen is not None:
            try:
                self.tally.unseen.check()
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from None
            warn_of_unseen(self.tally.unseen, self.name)
        if self.tally.skipped is not None:
            warnings.warn(f"{self.name}: {self.tally.skipped}", stacklevel=3)

    def chunks(self) -> Iterator[Chunk | MoleculeRows | DatasetChunk]:
        """Yield the inputs of :func:`prepare_graphs`, without the records that the tally has counted."""
        skip = self.tally.records
        if _is_files(self.source):
            yield from self.source.chunks(self.batch_size, skip=skip)
        elif isinstance(self.source, GraphDataset):
            for first in range(skip, len(self.source), self.batch_size):
                yield DatasetChunk(self.source[first : first + self.batch_size])
        else:
            graphs = islice(cast(Iterable[Data], self.source), skip, None)
            while chosen := list(islice(graphs, self.batch_size)):
                yield DatasetChunk(as_graph_dataset(chosen, encoding=self.encoding))


def _is_files(source: Any) -> TypeGuard[GraphSource]:
    return hasattr(source, "chunks")


def prepare_graphs(
    chunk: Chunk | MoleculeRows | DatasetChunk,
    *,
    name: str,
    encoding: NodeEncoding | None,
    preprocessing: Preprocessing,
) -> PreparedGraphs:
    """Parse, encode and preprocess the graphs of a chunk."""
    if isinstance(chunk, DatasetChunk):
        dataset = chunk.dataset
        positions = [] if dataset.is_whole else dataset.positions
        return _prepared(dataset, preprocessing, len(dataset), _targets(dataset), dataset.identifiers, positions)
    assert encoding is not None
    tables, skipped = chunk.parse() if isinstance(chunk, MoleculeRows) else (chunk.tables(), None)
    if tables is None:
        return PreparedGraphs(len(cast(MoleculeRows, chunk).rows), [], None, None, None, skipped, {}, {}, [])
    # The model uses neither edge attributes nor targets.
    plain = replace(tables, edge_labels=None, edge_attributes=None, targets=None, identifiers=None)
    try:
        dataset = build_dataset(plain, name=name, encoding=encoding, part=True)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    targets = None if tables.targets is None else tables.targets.tolist()
    identifiers = None if tables.identifiers is None else tables.identifiers.tolist()
    records = len(dataset) if skipped is None else skipped.of_rows
    prepared = _prepared(dataset, preprocessing, records, targets, identifiers, [])
    return prepared._replace(unseen=dataset.unseen, skipped=skipped)


def _prepared(
    dataset: GraphDataset,
    preprocessing: Preprocessing,
    records: int,
    targets: list[Any] | None,
    identifiers: list[Any] | None,
    positions: Sequence[int],
) -> PreparedGraphs:
    prepared = preprocessing(dataset).compact()
    keys = [key for key in ("x", "edge_index", *OPTIONAL_INPUTS) if key in prepared.slices]
    return PreparedGraphs(
        records=records,
        positions=positions,
        identifiers=identifiers,
        targets=targets,
        unseen=None,
        skipped=None,
        arrays={key: prepared.stacked[key].numpy() for key in keys},
        slices={key: torch.as_tensor(prepared.slices[key]).numpy() for key in keys},
        warned=[],
    )


def _with_warnings(prepare: Any, chunk: Chunk) -> PreparedGraphs:
    """Prepare a chunk in a worker process, and return its warnings to the parent process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepared: PreparedGraphs = prepare(chunk)
    texts = list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))
    return prepared._replace(warned=texts)


def _targets(dataset: GraphDataset) -> list[Any] | None:
    """Return the targets in the form of the source; ``None`` if unknown."""
    y: Tensor | None = dataset.y
    if y is None:
        return None
    if dataset.classes:
        return [dataset.classes[number] if number >= 0 else None for number in y.tolist()]
    return [None if isinstance(value, float) and math.isnan(value) else value for value in y.tolist()]

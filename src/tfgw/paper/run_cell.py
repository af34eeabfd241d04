"""Run one cell, in any process, and write its record."""

import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime

import torch

from tfgw.datasets.paths import cache_folder
from tfgw.paper.cell_graphs import class_labels
from tfgw.paper.cells import Cell
from tfgw.paper.classifiers import classifier_class, new_classifier
from tfgw.paper.machine import machine, versions
from tfgw.paper.protocols import Measurement, get_protocol
from tfgw.paper.records import Record, Records
from tfgw.paper.run_context import RunContext


def run_cell(cell: Cell, context: RunContext) -> Record:
    """Train, measure, and write the record, even of a failure."""
    torch.set_num_threads(context.threads)
    start = time.perf_counter()
    record: Record = {"cell": cell.as_dict()}
    times: dict[str, float] = {}
    try:
        result, times = _measure(cell, context)
        record |= {"status": "done", "result": result}
    except Exception as error:
        record |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    record["run"] = {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 3),
        "threads": context.threads,
        "jobs": context.jobs,
        "machine": machine(context.accelerator),
        "versions": versions(),
        **times,
    }
    Records(context.results).put(record)
    return record


def check_inputs(cells: Sequence[Cell], context: RunContext) -> None:
    """Raise an error before any cell runs if a dataset, a file of splits or a class is missing."""
    for path in {cell.model for cell in cells}:
        classifier_class(path)
    for cell in {(cell.protocol, cell.dataset, cell.splits): cell for cell in cells}.values():
        get_protocol(cell.protocol).check_inputs(cell, context)


def _measure(cell: Cell, context: RunContext) -> Measurement:
    protocol = get_protocol(cell.protocol)
    parts = protocol.parts(cell, context)
    classifier = new_classifier(cell, accelerator=context.accelerator, preprocessed=protocol.preprocesses)
    if hasattr(classifier, "precompute"):
        graphs = [graph for part in parts if part is not None for graph in part]
        classifier.precompute(graphs, context.distances or cache_folder() / "distances")
    validation = None if parts.validation is None else (list(parts.validation), class_labels(parts.validation))
    classifier.fit(list(parts.train), class_labels(parts.train), validation=validation)
    return protocol.measure(cell, classifier, parts)

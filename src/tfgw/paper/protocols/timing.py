"""``timing``: prediction time of a trained model per graph."""

import time
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset, load
from tfgw.paper.cell_graphs import cell_graphs
from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Unit
from tfgw.paper.protocols.protocol import Measurement, Protocol
from tfgw.paper.records import Record, Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary
from tfgw.train import Parts

REPEATS = 5
SINGLES = 50


class Timing(Protocol):
    """Number of parameters, and milliseconds per predicted graph, of a model trained on the whole dataset."""

    name = "timing"
    over = "runs"
    caption = (
        "Ours on one thread: all graphs of the dataset in one call, and one graph per call. Times include conversion "
        "of the graphs, checks and canonical order.",
    )
    columns = ("dataset", "model", "parameters, paper", "ours", "ms per graph, paper", "ours", "ours, one at a time")
    runs_alone = True
    depends_on_epochs = False

    def first_cells(self, series: Series) -> list[Cell]:
        return [self._cell(series, configuration) for configuration in series.configurations]

    def check_inputs(self, cell: Cell, context: RunContext) -> None:
        load(cell.dataset, data_dir=context.data_dir)

    def parts(self, cell: Cell, context: RunContext) -> Parts:
        """Return all graphs as loaded, because preprocessing is part of the prediction."""
        dataset = cell_graphs(cell, context)
        return Parts(dataset, None, dataset)

    def measure(self, cell: Cell, classifier: Any, parts: Parts) -> Measurement:
        assert parts.test is not None
        return Measurement({"num_parameters": classifier.num_parameters_}, prediction_times(classifier, parts.test))

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Return nothing, because there are no accuracies to average."""
        return []

    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        paper = series.row.paper.get(series.dataset)
        quoted = ("-", "-") if paper is None else (f"{paper[0]:.1f}k", f"{paper[1]}")
        parameters = "-" if summary.parameters is None else f"{summary.parameters / 1000:.1f}k ({summary.parameters:,})"
        times = [f"{time:.2f}" if time is not None else "-" for time in (summary.ms_per_graph, summary.ms_one_graph)]
        return [series.dataset, series.row.title, quoted[0], parameters, quoted[1], *times]


def prediction_times(classifier: Any, graphs: GraphDataset) -> dict[str, float]:
    """Return median milliseconds per graph over several repetitions: all graphs in one call, and one per call."""
    everything = list(graphs)
    together = [_seconds(classifier, everything) / len(everything) for _ in range(REPEATS)]
    alone = [_seconds(classifier, [graph]) for graph in everything[:SINGLES]]
    return {
        "ms_per_graph": round(1000 * float(np.median(together)), 4),
        "ms_one_graph": round(1000 * float(np.median(alone)), 4),
    }


def _seconds(classifier: Any, graphs: list[Any]) -> float:
    start = time.perf_counter()
    classifier.predict(graphs)
    return time.perf_counter() - start

"""Times of predictions, by a clock that the classifier moves."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from tests.paper.small import CYCLES, experiment
from tests.paper.test_summary import CPU
from tfgw.datasets import from_data_list
from tfgw.paper.experiment import UNITS
from tfgw.paper.plan import plan
from tfgw.paper.protocols.timing import prediction_times
from tfgw.paper.records import Records
from tfgw.paper.run_cell import run_cell
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Options
from tfgw.paper.summary import summarise


def test_times_of_all_graphs_together_and_of_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes 3 ms and 2 ms per graph; the first of each kind a second more, which a median does not show."""
    now, called = 5.0, set()

    class Classifier:
        def predict(self, graphs: list[Data]) -> None:
            nonlocal now
            now += 0.003 + 0.002 * len(graphs) + (len(graphs) not in called)
            called.add(len(graphs))

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = from_data_list([Data(edge_index=edges, num_nodes=2, y=torch.tensor([i % 2])) for i in range(6)])
    assert prediction_times(Classifier(), graphs) == pytest.approx({"ms_per_graph": 2.5, "ms_one_graph": 5.0})


def test_rows_of_a_table_of_times(tmp_path: Path) -> None:
    """Thousands of parameters and milliseconds, the paper's beside ours; a dash where nothing is known."""
    quoted = f"{CYCLES}paper = {{ '{tmp_path}/shapes' = [12.34, 0.5] }}\n"
    (series,) = plan(experiment(tmp_path, quoted, protocol="timing"), Options(preset="smoke"))
    records = Records(tmp_path / "results")
    unit = UNITS["percent"]
    head = [series.dataset, "It"]
    row = series.protocol.row(series, summarise(series, records), unit)
    assert row == [*head, "12.3k", "-", "0.5", "-", "-"]
    (one,) = series.first_cells()
    times = {"ms_per_graph": 1.234, "ms_one_graph": 5.678}
    result = {"num_parameters": 3100}
    records.put({"cell": one.as_dict(), "status": "done", "result": result, "run": {"machine": CPU, **times}})
    row = series.protocol.row(series, summarise(series, records), unit)
    assert row == [*head, "12.3k", "3.1k (3,100)", "0.5", "1.23", "5.68"]
    assert len(row) == len(series.protocol.columns)
    unknown = replace(series, row=replace(series.row, paper={}))
    assert series.protocol.row(unknown, summarise(series, records), unit)[2:5:2] == ["-", "-"]


def test_all_graphs_are_both_trained_on_and_timed(tmp_path: Path) -> None:
    model = CYCLES.replace("CycleFinder", "SizedCycleFinder")
    (series,) = plan(experiment(tmp_path, model, protocol="timing"), Options(preset="smoke"))
    (one,) = series.first_cells()
    context = RunContext(results=tmp_path / "results", accelerator="cpu")
    parts = series.protocol.parts(one, context)
    assert (len(parts.train), parts.validation, len(parts.test)) == (40, None, 40)
    record = run_cell(one, context)
    assert record["result"] == {"num_parameters": 3100}
    assert min(record["run"]["ms_per_graph"], record["run"]["ms_one_graph"]) > 0
    assert series.protocol.complete_groups(series, Records(context.results)) == []
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        series.protocol.check_inputs(replace(one, dataset=str(tmp_path / "elsewhere")), context)

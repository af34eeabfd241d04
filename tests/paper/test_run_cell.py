"""One cell: what it does to its graphs, and what it gives its classifier."""

import re
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.paper.small import CYCLES, TFGW, PrecomputingCycleFinder, cell, experiment
from tfgw.ot import GraphBatch, NodeOrder, canonical_order
from tfgw.paper.cells import Cell
from tfgw.paper.classifiers import new_classifier
from tfgw.paper.plan import plan
from tfgw.paper.published_splits import digest
from tfgw.paper.records import Records
from tfgw.paper.run_cell import check_inputs, run_cell
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Options


def first_cell(folder: Path) -> Cell:
    (series,) = plan(experiment(folder, TFGW), Options(preset="smoke"))
    return series.first_cells()[0]


def result(cell: Cell, folder: Path) -> dict[str, Any]:
    record = run_cell(cell, RunContext(results=folder / "results", accelerator="cpu"))
    assert record["status"] == "done", record
    return record["result"]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all graphs that are put in canonical order from now on."""
    sizes: list[int] = []

    def count(graphs: GraphBatch, **options: Any) -> NodeOrder:
        sizes.extend([len(graphs.x)] if graphs.batch is None else graphs.batch.bincount().tolist())
        return canonical_order(graphs, **options)

    monkeypatch.setattr("tfgw.datasets.canonical.canonical_order", count)
    return sizes


def test_graphs_are_put_in_canonical_order_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the cell; a second time by the classifier changes nothing but the time it takes."""
    sizes = counted(monkeypatch)
    one = first_cell(tmp_path)
    once = result(one, tmp_path)
    assert len(sizes) == 40
    twice = replace(one, configuration=one.configuration | {"canonical_order": True, "standardize": None})
    assert result(twice, tmp_path) == once
    assert len(sizes) >= 3 * 40
    assert "canonical_order" not in one.configuration


def test_the_time_of_a_cell_is_recorded(tmp_path: Path) -> None:
    start = time.perf_counter()
    record = run_cell(first_cell(tmp_path), RunContext(results=tmp_path / "results", accelerator="cpu"))
    assert 0 < record["run"]["seconds"] <= time.perf_counter() - start + 1e-3


def test_distances_of_all_graphs_of_a_cell_are_computed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a protocol without validation graphs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given: list[tuple[int, str]] = []
    monkeypatch.setattr(PrecomputingCycleFinder, "given", given)
    model = CYCLES.replace("CycleFinder", "PrecomputingCycleFinder")
    mine = experiment(tmp_path, model, protocol='fair", "train-all')
    for protocol in mine.protocols:
        (series,) = plan(mine, Options(preset="smoke", protocol=protocol))
        result(series.first_cells()[3], tmp_path)
    assert given == [(40, "distances")] * 2


@pytest.mark.parametrize(
    ("model", "preprocessed", "configuration", "expected"),
    [
        ("tfgw.estimators:TFGWClassifier", True, {}, (False, False)),
        ("tfgw.estimators:TFGWClassifier", True, {"standardize": True}, (False, True)),
        ("tfgw.estimators:TFGWClassifier", False, {}, (True, None)),
        ("tfgw.baselines:MLP", True, {}, (None, None)),  # standardises what it computes from the features
    ],
)
def test_settings_of_a_classifier(
    model: str, preprocessed: bool, configuration: dict[str, Any], expected: tuple[bool | None, bool | None]
) -> None:
    one = cell(model=model, configuration=configuration)
    found = new_classifier(one, accelerator="cpu", preprocessed=preprocessed).get_params()
    assert (found.get("canonical_order"), found["standardize"]) == expected
    assert found["accelerator"] == "cpu"


def test_a_cell_always_draws_the_same_numbers() -> None:
    """Records are compared over versions: another random state would be another experiment."""
    model = "tfgw.estimators:TFGWClassifier"
    one = cell(model=model, configuration={}, split_seed=2, fold=3, seed=5)
    assert new_classifier(one, accelerator="cpu", preprocessed=True).random_state == 298760298


def test_a_record_tells_how_the_cell_was_run(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        context = RunContext(results=tmp_path / "results", accelerator="cpu", threads=2, jobs=7)
        (series,) = plan(experiment(tmp_path, CYCLES), Options(preset="smoke"))
        record = run_cell(series.first_cells()[0], context)
        assert torch.get_num_threads() == record["run"]["threads"] == 2
    finally:
        torch.set_num_threads(before)
    finished = datetime.fromisoformat(record["run"]["finished"])
    assert (finished.utcoffset(), finished.microsecond) == (timedelta(0), 0)
    assert record["run"]["machine"]["gpu"] is None
    assert record["run"]["jobs"] == 7
    assert record["run"]["versions"]["torch"] == torch.__version__
    assert re.fullmatch("[0-9a-f]{10}", record["run"]["versions"]["core"])
    assert record["run"]["machine"]["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert Records(context.results).get(series.first_cells()[0]) == record
    assert (
        record["result"]["train_graphs"] + record["result"]["validation_graphs"] + record["result"]["test_graphs"] == 40
    )


def test_what_is_missing_is_told_before_any_cell_runs(tmp_path: Path) -> None:
    context = RunContext(results=tmp_path / "results", splits=tmp_path / "splits.json")
    one = first_cell(tmp_path)
    check_inputs([one], context)
    with pytest.raises(ValueError, match=r"class 'tfgw\.baselines:GON': cannot be imported"):
        check_inputs([one, replace(one, model="tfgw.baselines:GON")], context)
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        check_inputs([one, replace(one, dataset=str(tmp_path / "elsewhere"))], context)
    with pytest.raises(FileNotFoundError, match="no such file of splits"):
        check_inputs([one, replace(one, splits="0a")], context)
    (tmp_path / "splits.json").write_text("[]")
    with pytest.raises(ValueError, match=r"splits\.json: differs from the splits of the experiment, .* is 0a"):
        check_inputs([replace(one, splits="0a")], context)
    with pytest.raises(ValueError, match="expected 10 folds, found 0"):
        check_inputs([replace(one, splits=digest(tmp_path / "splits.json"))], context)
    with pytest.raises(ValueError, match=r"splits: required for .*shapes: the folder of its published splits"):
        check_inputs([replace(one, splits="0a")], replace(context, splits=None))


def test_distances_and_templates_are_recorded_if_asked_for(tmp_path: Path) -> None:
    (series,) = plan(experiment(tmp_path, f'{TFGW}collect = "embedding"\n'), Options(preset="smoke"))
    one = series.first_cells()[0]
    found = result(one, tmp_path)
    sizes = {part: found[f"{part}_graphs"] for part in ("train", "validation", "test")}
    assert {part: len(rows) for part, rows in found["embedding"]["distances"].items()} == sizes
    assert {part: len(labels) for part, labels in found["embedding"]["labels"].items()} == sizes
    assert "embedding" not in result(replace(one, collect=None), tmp_path)


@pytest.mark.parametrize("protocol", ["fair", "timing"])
def test_datasets_are_looked_up_in_their_folder(tmp_path: Path, protocol: str) -> None:
    model = CYCLES.replace("CycleFinder", "SizedCycleFinder")
    (series,) = plan(experiment(tmp_path, model, protocol=protocol), Options(preset="smoke"))
    one = replace(series.first_cells()[0], dataset="shapes")
    context = RunContext(results=tmp_path / "results", data_dir=tmp_path, accelerator="cpu")
    check_inputs([one], context)
    assert run_cell(one, context)["status"] == "done"
    with pytest.raises(FileNotFoundError, match="shapes"):
        check_inputs([one], replace(context, data_dir=tmp_path / "results"))

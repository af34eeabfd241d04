"""Tables: captions say what a reader must know, and nothing that is not so."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.paper.small import CYCLES, TFGW, experiment
from tests.paper.test_summary import CPU, GPU, put
from tfgw.paper.experiment import Experiment
from tfgw.paper.plan import plan
from tfgw.paper.records import Records
from tfgw.paper.series import Options, Series
from tfgw.paper.summary import summarise
from tfgw.paper.tables import Summaries, caption, markdown, table_data, table_rows
from tfgw.paper.time_estimates import TimeEstimates, format_duration

SMOKE = Options(preset="smoke")


def planned(folder: Path, model: str) -> tuple[Experiment, Series, Records]:
    mine = experiment(folder, model)
    (series,) = plan(mine, SMOKE)
    return mine, series, Records(folder / "results")


def lines_of(mine: Experiment, series: Series, records: Records, options: Options = SMOKE) -> list[str]:
    return caption(mine, series.protocol, options, [(series, summarise(series, records))])


def test_a_caption_without_results(tmp_path: Path) -> None:
    mine, series, records = planned(tmp_path, CYCLES)
    assert lines_of(mine, series, records) == [
        "mine.",
        "Protocol `fair`, preset `smoke`; 0 of 40 cells done.",
        *series.protocol.caption,
        "Rows not run yet: 1 of 1.",
    ]


def test_rows_that_have_not_run_have_their_expected_time(tmp_path: Path) -> None:
    """Another configuration of the first model has run, and nothing of the second."""
    mine, series, records = planned(tmp_path, CYCLES)
    (tmp_path / "other").mkdir()
    _, other, _ = planned(tmp_path / "other", CYCLES.replace("CycleFinder", "SizedCycleFinder"))
    cells = series.first_cells()
    for cell in cells[:5]:
        put(records, replace(cell, configuration={"wrong": 0.1}), 0.5, CPU)
    estimates = TimeEstimates(records, CPU)
    summaries = [(one, summarise(one, records, estimates)) for one in (series, other)]
    expected = estimates.total(cells).seconds
    assert summaries[0][1].expected_seconds == pytest.approx(expected)
    text = format_duration(expected)
    rows = table_rows(mine, series.protocol, summaries)[1:]
    assert [row[3] for row in rows] == [f"not run yet (about {text})", "not run yet"]
    line = f"Rows not run yet: 2 of 2, about {text} of CPU time (estimated for the machine that made this table)."
    assert line in caption(mine, series.protocol, SMOKE, summaries)
    put(records, cells[0], 0.5, CPU)
    found = summarise(series, records, estimates)
    assert found.expected_seconds is None
    assert table_rows(mine, series.protocol, [(series, found)])[1][3] == "-"


def test_a_caption_with_results(tmp_path: Path) -> None:
    """Some cells ran on a GPU, one failed; the paper trains longer; a row has a note."""
    mine, series, records = planned(tmp_path, f'{TFGW}note = "two templates"\n')
    cells = series.first_cells()
    for cell, machine in zip(cells[:3], (CPU, GPU, CPU), strict=True):
        put(records, cell, 0.5, machine, validation_accuracy=None, train_accuracy=1.0)
    put(records, cells[3], None)
    from_file = replace(series, splits="a digest")
    assert from_file.first_cells() != cells
    found = lines_of(mine, series, records, Options(preset="smoke", grouped=True, splits=tmp_path))
    how = "Protocol `fair`, isomorphic graphs grouped, preset `smoke`"
    longest = mine.setting(series.row, series.dataset, "full", "epochs")
    assert found == [
        "mine.",
        f"{how}; 3 of 40 cells done, 1 failed.",
        *series.protocol.caption,
        f"Trained for fewer `epochs` than the paper's {longest}.",
        "Rows whose time is marked * were run on a GPU, entirely or partly.",
        f"There are no published splits of {series.dataset}: the folds are our own.",
        "Machines: Fast, 4 cores; Fast, 4 cores with Faster. `time` is the total over all cells.",
        "It: two templates.",
    ]
    found = lines_of(mine, from_file, records, Options(splits=tmp_path))
    assert "Protocol `fair`, published splits, preset `quick`; 0 of 40 cells done." in found
    assert not any("our own" in line for line in found)
    assert caption(mine, series.protocol, Options(preset="full"), [])[2:] == list(series.protocol.caption)


def test_the_caption_names_rows_of_an_uncommitted_tree(tmp_path: Path) -> None:
    mine, series, records = planned(tmp_path, CYCLES)
    for cell, commit in zip(series.first_cells(), ("1a2b", "1a2b-dirty", "3c4d-dirty", None), strict=False):
        put(records, cell, 0.5, validation_accuracy=0.5, train_accuracy=1.0)
        record = records.get(cell)
        records.put(record | {"run": record["run"] | ({"versions": {"commit": commit}} if commit else {})})
    found = summarise(series, records)
    assert (found.done, found.uncommitted, found.commits) == (4, 2, ["1a2b", "1a2b-dirty", "3c4d-dirty"])
    (line,) = [line for line in lines_of(mine, series, records) if "uncommitted" in line]
    assert line == f"Cells that were run with uncommitted changes of the code: {series.dataset}, It (2 of 4)."


def test_a_reason_takes_the_place_of_a_result(tmp_path: Path) -> None:
    model = f"{CYCLES}not_run = [{{ datasets = ['{tmp_path}/shapes'], reason = 'too large' }}]\n"
    mine, series, records = planned(tmp_path, model)
    summaries: Summaries = [(series, summarise(series, records))]
    header, row = table_rows(mine, series.protocol, summaries)
    named = dict(zip(header, row, strict=True))
    assert (named["ours, test"], named["cells"]) == ("too large", "0/0")
    (entry,) = table_data(summaries)
    assert (entry["not_run"], entry["done"], entry["total"]) == ("too large", 0, 0)
    how = "Protocol `fair`, preset `smoke`; 0 of 0 cells done; 1 rows with a reason instead of cells."
    assert lines_of(mine, series, records)[1] == how


def test_the_caption_explains_rows_of_another_protocol(tmp_path: Path) -> None:
    """They have cells of their own protocol; the table has the columns of the first."""
    mine = experiment(tmp_path, f'{CYCLES}[[rows]]\nlike = "recipe/wl"\nprotocols = {{ fair = "train-all" }}\n')
    rows = (mine.rows[0], replace(mine.rows[1], model="other", title="Other"))
    mine = replace(mine, rows=rows)
    series, records = plan(mine, SMOKE), Records(tmp_path / "results")
    assert [one.protocol.name for one in series] == ["fair", "train-all"]
    summaries = [(one, summarise(one, records)) for one in series]
    how = "Models are trained on all graphs outside of the test fold. There are no validation graphs."
    assert f"Protocol `train-all`: Other. {how}" in caption(mine, series[0].protocol, SMOKE, summaries)
    assert not any("train-all" in line for line in caption(mine, series[0].protocol, SMOKE, summaries[:1]))
    header, *body = table_rows(mine, series[0].protocol, summaries)
    assert {len(row) for row in body} == {len(header)}
    assert [entry["protocol"] for entry in table_data(summaries)] == ["fair", "train-all"]


def test_shares_of_holdouts_are_in_rows_and_data(tmp_path: Path) -> None:
    model = f"{CYCLES}paper = {{ '{tmp_path}/shapes' = [60.0, 3.0] }}\n"
    mine = experiment(tmp_path, model, protocol="paper", presets="holdouts = 4\nfolds = 1")
    (series,) = plan(mine, SMOKE)
    records = Records(tmp_path / "results")
    for cell, test in zip(series.first_cells(), (0.5, 0.7, 0.8, 0.9), strict=True):
        put(records, cell, test, validation_accuracy=0.5 + 0.1 * (test == 0.9), train_accuracy=1.0)
    summaries: Summaries = [(series, summarise(series, records))]
    header, row = table_rows(mine, series.protocol, summaries)
    named = dict(zip(header, row, strict=True))
    assert (named["test ≥ paper"], named["validation ≥ paper"]) == ("75.0", "25.0")
    (entry,) = table_data(summaries)
    assert (entry["test_reached"], entry["validation_reached"]) == (0.75, 0.25)
    assert "Only 1 of the 10 models of a hold-out was trained." in lines_of(mine, series, records)


def test_the_caption_names_folds_only_if_some_are_left_out(tmp_path: Path) -> None:
    for folds, expected in ((10, []), (3, ["Only 3 of the 10 models of a hold-out were trained."])):
        folder = tmp_path / str(folds)
        folder.mkdir()
        mine = experiment(folder, CYCLES, protocol="paper", presets=f"holdouts = 1\nfolds = {folds}")
        (series,) = plan(mine, SMOKE)
        found = lines_of(mine, series, Records(folder / "results"))
        assert [line for line in found if line.startswith("Only")] == expected


def test_rows_and_data_are_of_one_summary(tmp_path: Path) -> None:
    mine, series, records = planned(tmp_path, f"{CYCLES}paper = {{ '{tmp_path}/shapes' = [91.5, 2.0] }}\n")
    for cell in series.first_cells()[:8]:
        accuracies = {"validation_accuracy": 0.5, "train_accuracy": 1.0}
        put(records, cell, 0.75 + 0.125 * cell.fold, GPU, **accuracies)
    summaries: Summaries = [(series, summarise(series, records))]
    header, row = table_rows(mine, series.protocol, summaries)
    named = dict(zip(header, row, strict=True))
    assert named["paper"] == "91.5 ± 2.0"
    assert named["ours, test"] == "81.2 ± 8.8"
    assert (named["± over"], named["validation"], named["train"]) == ("2 folds", "50.0", "100.0")
    assert (named["cells"], named["epochs"], named["time"][-1]) == ("8/40", "-", "*")
    (entry,) = table_data(summaries)
    assert (entry["model"], entry["protocol"], entry["paper"], entry["test"]) == ("it", "fair", (91.5, 2.0), 0.8125)
    assert markdown([["a", "b"], ["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"

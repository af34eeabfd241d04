"""Statistics of comparisons, against values worked out by hand, by SciPy and in print."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.cli.test_cli import write_tu_folder
from tests.paper.small import write_experiment
from tfgw.cli import main
from tfgw.paper.comparison import (
    Ranking,
    average_ranks,
    corrected_t_test,
    critical_difference,
    differences,
    holm,
    indistinguishable,
    ranking,
)
from tfgw.paper.experiment import load_experiment
from tfgw.paper.figures.critical_differences import draw_ranks
from tfgw.paper.plan import plan
from tfgw.paper.records import Records
from tfgw.paper.series import Options, Series

MODELS = """
class = "tests.paper.small:CycleFinder"
by_epochs = false
[[rows]]
model = "other"
title = "Other"
class = "tests.paper.small:CycleFinder"
by_epochs = false
fixed = { wrong = 0.5 }
"""


def test_without_shared_graphs_it_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.8, 0.05, 7), rng.normal(0.75, 0.05, 7)
    mean, half, p = corrected_t_test((ours - theirs).tolist(), test_share=0.0)
    expected = stats.ttest_rel(ours, theirs)
    low, high = expected.confidence_interval(0.95)
    assert [mean - half, mean + half, p] == pytest.approx([low, high, expected.pvalue])


def test_shared_training_graphs_widen_the_interval() -> None:
    """Ten folds: s² (1/10 + 1/9) in place of s²/10, so the interval is √(19/9) times as wide."""
    values = [0.01, 0.03, -0.02, 0.05, 0.04, 0.0, 0.02, 0.06, -0.01, 0.03]
    plain, corrected = (corrected_t_test(values, test_share=share) for share in (0.0, 1 / 9))
    assert corrected[0] == plain[0] == pytest.approx(0.021)
    assert corrected[1] / plain[1] == pytest.approx(np.sqrt(19 / 9))
    assert corrected[2] > plain[2]


def test_differences_that_do_not_vary() -> None:
    assert corrected_t_test([0.0, 0.0, 0.0], test_share=0.1) == (0.0, 0.0, 1.0)
    assert corrected_t_test([0.25, 0.25], test_share=0.1) == (0.25, 0.0, 0.0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_equal_accuracies_share_their_ranks() -> None:
    accuracies = np.array([[0.9, 0.7, 0.8], [0.5, 0.5, 0.4]])
    assert average_ranks(accuracies).tolist() == [1.25, 2.25, 2.5]


@pytest.mark.parametrize(("models", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_critical_values_of_demsar(models: int, q: float) -> None:
    """Table 5 (a) of Demšar (2006)."""
    assert critical_difference(models, 14) == pytest.approx(q * np.sqrt(models * (models + 1) / (6 * 14)), rel=3e-4)


def test_bars_join_the_largest_runs() -> None:
    assert indistinguishable([1.0, 1.5, 2.4, 4.0, 4.2], 1.0) == [(0, 1), (1, 2), (3, 4)]
    assert indistinguishable([1.0, 3.0], 1.0) == []
    assert indistinguishable([1.0, 2.0], 1.0) == [(0, 1)]
    assert indistinguishable([1.0, 1.2, 1.4], 5.0) == [(0, 2)]


@pytest.fixture
def two_models(tmp_path: Path) -> tuple[Path, list[Series], Records]:
    """An experiment of two models, with results made up: the first is right more often, by 0.1 and by 0.3 in turn."""
    path = write_experiment(tmp_path, MODELS, presets="folds = 10\ngraphs = 0")
    series = plan(load_experiment(str(path)), Options(preset="smoke"))
    records = Records(tmp_path / "results")
    for one in series:
        for cell in one.first_cells():
            ahead = (0.1 if cell.fold % 2 else 0.3) if one.row.model == "it" else 0.0
            accuracy = 0.5 + ahead + 0.01 * cell.fold + 0.02 * (cell.seed - 2.5)
            result: dict[str, Any] = {"test_accuracy": accuracy, "train_graphs": 36, "test_graphs": 4}
            records.put({"cell": cell.as_dict(), "status": "done", "result": result, "run": {}})
    return path, series, records


def test_models_are_paired_fold_by_fold(two_models: tuple[Path, list[Series], Records]) -> None:
    _, series, records = two_models
    (found,) = differences(series, records, model="it", others=["other"])
    mean, half, p = corrected_t_test([0.3, 0.1] * 5, test_share=1 / 9)
    assert found.units == 10
    assert [found.difference, found.low, found.high] == pytest.approx([mean, mean - half, mean + half])
    assert found.p == found.p_holm == pytest.approx(p)
    (reverse,) = differences(series, records, model="other", others=["it"])
    assert reverse.difference == pytest.approx(-mean)
    ranks = ranking(series, records, ["other", "it"])
    assert ranks is not None
    assert ranks.models == ["it", "other"]
    assert ranks.ranks == [1.0, 2.0]
    assert ranks.p is None  # Friedman's test needs three models


@pytest.mark.parametrize(("folds", "compared"), [(1, 0), (2, 1)])
def test_two_results_in_common_are_enough(
    two_models: tuple[Path, list[Series], Records], tmp_path: Path, folds: int, compared: int
) -> None:
    _, series, everything = two_models
    records = Records(tmp_path / "few")
    for record in everything:
        if record["cell"]["fold"] < folds or not record["cell"]["configuration"]:
            records.put(record)
    found = differences(series, records, model="it", others=["other"])
    assert [difference.units for difference in found] == [2] * compared
    assert (ranking(series, records, ["it", "other"]) is not None) == bool(compared)


ACCURACIES = {"shapes": (0.5, 0.7, 0.6), "second": (0.6, 0.8, 0.7), "third": (0.9, 0.8, 0.7)}


@pytest.mark.parametrize(("models", "datasets"), [(3, 3), (2, 3), (3, 1)])
def test_friedman_needs_three_models_and_two_datasets(tmp_path: Path, models: int, datasets: int) -> None:
    third = MODELS.partition("[[rows]]")[2].replace("other", "last").replace("0.5", "0.25")
    path = write_experiment(tmp_path, f"{MODELS}[[rows]]{third}")
    others = [write_tu_folder(tmp_path / name, graphs=40) for name in list(ACCURACIES)[1:datasets]]
    folders = [str(folder) for folder in (tmp_path / "shapes", *others)]
    path.write_text(path.read_text().replace(f'["{folders[0]}"]', str(folders)))
    series, records = plan(load_experiment(str(path)), Options(preset="smoke")), Records(tmp_path / "results")
    names = ["it", "other", "last"][:models]
    for one in series:
        for cell in one.first_cells():
            accuracy = ACCURACIES[Path(one.dataset).name][["it", "other", "last"].index(one.row.model)]
            result: dict[str, Any] = {"test_accuracy": accuracy + 0.01 * cell.fold}
            records.put({"cell": cell.as_dict(), "status": "done", "result": result, "run": {}})
    found = ranking(series, records, names)
    assert found is not None
    table = np.array([row[:models] for row in list(ACCURACIES.values())[:datasets]])
    ranks = dict(zip(names, average_ranks(table), strict=True))
    assert found.models == sorted(names, key=ranks.__getitem__)
    assert found.ranks == sorted(ranks.values())
    assert [Path(name).name for name in found.datasets] == list(ACCURACIES)[:datasets]
    assert found.critical_difference == critical_difference(models, datasets)
    if (models, datasets) == (3, 3):
        assert found.p == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    else:
        assert found.p is None


def test_the_command_compares(
    two_models: tuple[Path, list[Series], Records], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, _, records = two_models
    options = ["--preset", "smoke", "--results", str(records.folder)]
    figure = tmp_path / "ranks.svg"
    assert main(["paper", "compare", str(path), "it", "other", *options, "--output", str(figure)]) == 0
    text = capsys.readouterr().out
    assert "+20.0" in text
    assert "It     1.00" in text
    assert "critical difference" in figure.read_text()
    assert main(["paper", "compare", str(path), "it", "other", *options, "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| It | 1.00 |" in lines
    assert not any("Protocol `train-all`" in line for line in lines)
    assert main(["paper", "compare", str(path), "it", "nobody", *options]) == 1
    assert "model 'nobody': not in this experiment" in capsys.readouterr().err
    empty = [*options[:3], str(tmp_path / "nowhere")]
    assert main(["paper", "compare", str(path), "it", "other", *empty]) == 1
    assert "no records of it; run: tfgw paper run" in capsys.readouterr().err


def test_a_diagram_names_every_model() -> None:
    models = [f"m{number}" for number in range(13)]
    ranks = Ranking(models, [1 + number for number in range(13)], ["A", "B"], 0.01, 2.5)
    figure = draw_ranks(ranks, {"m3": "Third $"})
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum("  " in text for text in texts) == 13
    assert any("Third $  4.00" in text for text in texts)

"""Figures from records with known content: what is drawn is what the records say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tfgw.cli import main
from tfgw.paper.cells import Cell
from tfgw.paper.experiment import load_experiment, names
from tfgw.paper.figures import alpha, benchmark, by_templates, layers
from tfgw.paper.plan import plan
from tfgw.paper.records import Records
from tfgw.paper.series import Options, Series

FIGURES = [name for name in names() if load_experiment(name).figure]
SMOKE = Options(preset="smoke")


def accuracy(cell: Cell) -> float:
    """Grows with templates and layers, and differs between folds and generated datasets."""
    size = cell.configuration.get("num_templates", 0) + cell.configuration.get("num_layers", 0)
    return 0.4 + 0.01 * size + 0.02 * (cell.fold + cell.split_seed)


def embedding(templates: int, nodes: int = 13, features: int = 18) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    C = np.triu(rng.random((templates, nodes, nodes)) < 0.2, 1).astype(float)
    return {
        "distances": {part: rng.random((20, templates)).tolist() for part in ("train", "validation", "test")},
        "labels": {part: [0, 1] * 10 for part in ("train", "validation", "test")},
        "template_structure": (C + C.transpose(0, 2, 1)).tolist(),
        "template_features": rng.random((templates, nodes, features)).tolist(),
        "template_weights": rng.dirichlet(np.ones(nodes), size=templates).tolist(),
        "template_distances": rng.random((templates, templates)).tolist(),
        "template_classes": [k % 2 for k in range(templates)],
    }


RUN = {"seconds": 1.5, "machine": {"processor": "a processor", "cores": 4, "gpu": None}}


def invented(folder: Path, name: str) -> tuple[list[Series], Records]:
    series, records = plan(load_experiment(name), SMOKE), Records(folder)
    for one in series:
        for cell in one.first_cells():
            result: dict[str, Any] = {"test_accuracy": accuracy(cell), "alpha": 0.3 + 0.1 * cell.fold}
            result |= {"validation_accuracy": None, "train_accuracy": 1.0, "train_graphs": 9, "test_graphs": 1}
            if cell.collect:
                result["embedding"] = embedding(cell.configuration["num_templates"])
            records.put({"cell": cell.as_dict(), "status": "done", "result": result, "run": RUN})
    return series, records


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "fig-templates"])
def test_every_figure_can_be_drawn(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invented(tmp_path / "results", name)
    for suffix in ("png", "svg", "pdf"):
        path = tmp_path / f"{name}.{suffix}"
        command = ["paper", "plot", name, "--preset", "smoke", "--results", str(tmp_path / "results")]
        assert main([*command, "--output", str(path)]) == 0, capsys.readouterr().err
        assert path.stat().st_size > 5000


def test_accuracy_by_templates(tmp_path: Path) -> None:
    series, records = invented(tmp_path, "fig-4cycles")
    (axis,) = by_templates.draw(load_experiment("fig-4cycles"), series, records, None).axes
    for line in axis.lines:
        counts, means = line.get_data()
        np.testing.assert_allclose(means, 0.4 + 0.01 * np.array(counts) + 0.02 * 0.5)
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["fixed (2 runs)", "learned (2 runs)"]


def test_every_number_of_templates_has_its_tick(tmp_path: Path) -> None:
    """Also those that only the first line reaches so far."""
    series, records = plan(load_experiment("fig-4cycles"), SMOKE), Records(tmp_path)
    fixed, learned = (one.first_cells() for one in series)
    for cell in [*fixed, *learned[:2]]:
        result = {"test_accuracy": accuracy(cell)}
        records.put({"cell": cell.as_dict(), "status": "done", "result": result, "run": {}})
    (axis,) = by_templates.draw(load_experiment("fig-4cycles"), series, records, None).axes
    assert list(axis.get_xticks()) == [2, 4, 6, 8, 12, 16, 20]


def test_accuracy_by_layers(tmp_path: Path) -> None:
    """One box for each L and K, in order; their means grow with both."""
    series, records = invented(tmp_path, "fig-layers")
    (axis,) = layers.draw(load_experiment("fig-layers"), series, records, None).axes
    means = [line.get_ydata()[0] for line in axis.lines if line.get_marker() == "D"]
    expected = [100 * (0.4 + 0.01 * (K + L) + 0.02 * 0.5) for L in range(5) for K in (4, 8, 12, 16)]
    np.testing.assert_allclose(means, expected)


def test_rows_of_the_benchmark_beside_the_paper(tmp_path: Path) -> None:
    """Means over two folds with their corrected intervals; what has not run leaves a gap."""
    experiment = load_experiment("fig-benchmark")
    series, records = plan(experiment, SMOKE), Records(tmp_path)
    known = {("MUTAG", "tfgw-adj"): (0.7, 0.8), ("MUTAG", "wwl"): (0.6, 0.9), ("NCI1", "tfgw-adj"): (0.5, 0.54)}
    for one in series:
        accuracies = known.get((one.dataset, one.row.model), ())
        for cell, test in zip(one.first_cells(), accuracies, strict=False):
            result = {"test_accuracy": test, "validation_accuracy": None, "train_accuracy": 1.0}
            result |= {"train_graphs": 80, "test_graphs": 20}
            records.put({"cell": cell.as_dict(), "status": "done", "result": result, "run": RUN})
    (axis,) = benchmark.draw(experiment, series, records, None).axes
    points = {found.get_label(): found.get_offsets().tolist() for found in axis.collections}
    assert list(points) == ["the paper's TFGW ADJ", "TFGW ADJ", "WWL kernel"]
    paper = experiment.rows[0].paper
    assert [round(y, 6) for _, y in points["the paper's TFGW ADJ"]] == [paper[name][0] for name in experiment.datasets]
    assert [[round(x), round(y, 6)] for x, y in points["TFGW ADJ"]] == [[0, 75.0], [4, 52.0]]
    assert [[round(x), round(y, 6)] for x, y in points["WWL kernel"]] == [[0, 75.0]]
    order = [points[label][0][0] for label in points]
    assert order == sorted(order)
    bars = [line.get_ydata() for line in axis.lines if len(set(line.get_xdata())) == 1 and max(line.get_ydata()) > 1]
    half = stats.t.ppf(0.975, 1) * np.std([50.0, 54.0], ddof=1) * np.sqrt(1 / 2 + 20 / 80)
    np.testing.assert_allclose(bars[1], [52 - half, 52 + half])


def test_every_alpha_is_counted(tmp_path: Path) -> None:
    series, records = invented(tmp_path, "fig-alpha")
    figure = alpha.draw(load_experiment("fig-alpha"), series, records, None)
    legends = [text.get_text() for axis in figure.axes for text in axis.get_legend().get_texts()]
    assert legends == ["ADJ (2 models)", "SP (2 models)"] * 2


def test_missing_records_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "plot", "fig-pca", "--results", str(tmp_path)]) == 1
    assert "tfgw paper run fig-pca --dataset PTC_MR --model l0-k4" in capsys.readouterr().err
    assert main(["paper", "plot", "table1", "--results", str(tmp_path)]) == 1
    assert "is a table" in capsys.readouterr().err
    assert main(["paper", "plot", "fig-samples", "--output", str(tmp_path / "a.jpg")]) == 1
    assert "must end in .png, .svg, .pdf" in capsys.readouterr().err

"""Reports of kernel machines: their sections, leave-one-out, influential training graphs, explanations."""

from functools import cache

import numpy as np
import pytest
import torch

import tfgw
from tests.report.small_reports import kernel_parts
from tests.report.test_report import Elements, plots, tables
from tfgw.nn.kernel_model import Combination
from tfgw.report import Page, model_report
from tfgw.report.page import Section
from tfgw.report.report_data import ReportData


@cache
def page_of(task: str = "classification", *names: str) -> Page:
    trained, parts = kernel_parts(task)
    chosen = {name: part for name, part in parts.items() if name in names} if names else parts
    return model_report(trained, chosen, name="small", options={"model": "kernel"})


def section_of(page: Page, name: str) -> Section:
    (found,) = [section for section in page.sections if section.name == name]
    return found


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_sections_are_those_that_apply(task: str) -> None:
    page = page_of(task)
    assert [section.name for section in page.sections] == [
        "performance", "influence", "explanations", "map", "trust", "what",
    ]  # fmt: skip
    elements = Elements(page.html())
    assert elements.count("svg") == len(plots(page))
    for plot in plots(page):
        assert plot.alt.endswith(".")
        assert plot.table is not None or plot.name.endswith("-plan"), plot.name
    assert "all 14 training graphs" in page.lead


def test_leave_one_out_is_shown_next_to_the_test_graphs() -> None:
    trained, parts = kernel_parts()
    data = ReportData.of(trained, parts)
    of_training = data.part == "training"
    np.testing.assert_array_equal(data.outputs[of_training], trained.model.left_out.numpy())
    np.testing.assert_allclose(data.outputs[~of_training], trained.outputs(parts["test"]), atol=1e-12)
    right = int((trained.model.left_out.argmax(1) == parts["training"].y).sum())
    (row,) = next(
        table for caption, table in tables(page_of()).items() if caption.startswith("Leave-one-out on 14")
    ).rows
    assert row[3] == f"{right} of 14"
    assert f"{100 * right / 14:.1f} %" in [tile.value for tile in page_of().tiles if "leave-one-out" in tile.label]


def test_influence_is_the_mean_contribution_over_the_test_graphs() -> None:
    trained, parts = kernel_parts()
    view = ReportData.of(trained, parts).kernel
    assert view is not None
    assert view.influenced == 6
    for output, label in enumerate(trained.classes):
        found = [tfgw.explain(trained, graph, target=label).training_contributions.abs() for graph in parts["test"]]
        np.testing.assert_allclose(view.influence[output], torch.stack(found).mean(0).numpy(), atol=1e-9)


def test_each_class_has_its_most_influential_graphs() -> None:
    trained, parts = kernel_parts()
    page, view = page_of(), ReportData.of(trained, parts).kernel
    assert view is not None
    (_, *rows) = section_of(page, "influence").blocks
    y = parts["training"].y.numpy()
    for output, plot in enumerate(rows):
        names = [row[0] for row in plot.table.rows]
        own = np.flatnonzero(y == output)
        assert sorted(names, key=int) == [str(number) for number in own]
        assert names[0] == str(own[view.influence[output, own].argmax()])
        values = [row[3] for row in plot.table.rows]
        assert values == sorted(values, reverse=True)


def test_sums_of_explanations_are_exact() -> None:
    for part in section_of(page_of(), "explanations").parts:
        table = next(block for block in part.blocks if getattr(block, "caption", "") == "Sum of the contributions")
        values = dict(table.rows)
        assert abs(values["residual of the sum"]) < 1e-9
        *steps, score = [value for name, value in table.rows if name != "residual of the sum"]
        assert sum(steps) == pytest.approx(score, abs=1e-9)


def test_without_the_training_part() -> None:
    """Training graphs are those of the model file; their names and classes are unknown."""
    page = page_of("classification", "test")
    (_, plot) = section_of(page, "influence").blocks
    assert sorted(row[0] for row in plot.table.rows) == sorted(f"training {number}" for number in range(14))
    assert {row[1] for row in plot.table.rows} == {None}
    assert not any("Leave-one-out" in caption for caption in tables(page))


def test_the_training_part_alone_is_evaluated_by_leave_one_out() -> None:
    page = page_of("classification", "training")
    assert "On 14 training graphs, leave-one-out" in tables(page)
    assert any("leave-one-out prediction, but the prediction that is explained" in block.text
               for block in section_of(page, "explanations").blocks if block.kind == "text")  # fmt: skip


@pytest.mark.parametrize(
    ("combine", "expected"), [("scores", "one for each distance"), ("distances", "one for all distances together")]
)
def test_the_overview_tells_how_distances_are_combined(combine: Combination, expected: str) -> None:
    trained, parts = kernel_parts(combine=combine)
    page = model_report(trained, parts, name="small", options={})
    (value,) = [row[1] for row in tables(page)["Model"].rows if row[0] == "regressions"]
    assert value == expected

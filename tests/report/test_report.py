"""Reports say what models do, whatever names are, and need nothing but themselves."""

import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.report.small_reports import small_page, small_report_data
from tfgw.report.explanation_section import chosen_graphs
from tfgw.report.page import Page, Plot, Table
from tfgw.report.performance_section import wilson_interval

SVG = "{http://www.w3.org/2000/svg}"


@cache
def page_of(task: str = "classification") -> Page:
    """Made once for all tests."""
    return small_page(task)


class Elements(HTMLParser):
    """Every element with its attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.found)


def plots(page: Page) -> list[Plot]:
    blocks = [block for section in page.sections for block in section.blocks]
    blocks += [block for section in page.sections for part in section.parts for block in part.blocks]
    return [block for block in blocks if isinstance(block, Plot)]


def tables(page: Page) -> dict[str, Table]:
    blocks = [b for s in page.sections for b in (*s.blocks, *(x for p in s.parts for x in p.blocks))]
    return {block.caption: block for block in blocks if isinstance(block, Table)}


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_a_page_for_every_task(task: str) -> None:
    page = page_of(task)
    html = page.html()
    elements = Elements(html)
    assert [section.name for section in page.sections] == [
        "performance", "templates", "explanations", "map", "training", "trust", "what",
    ]  # fmt: skip
    ids = Counter(attributes["id"] for _, attributes in elements.found if "id" in attributes)
    assert not [name for name, times in ids.items() if times > 1]
    targets = {attributes["href"] for tag, attributes in elements.found if tag == "a"}
    assert {f"#{section.name}" for section in page.sections} <= targets
    assert {str(target)[1:] for target in targets} <= ids.keys()
    assert elements.count("svg") == len(plots(page)) == html.count('role="img"')
    addresses = re.findall(r"https?://[^\"' <)]+", html)
    assert {address for address in addresses if "www.w3.org" not in address} == set()


def test_every_plot_has_words_and_numbers() -> None:
    for plot in plots(page_of()):
        assert plot.alt.endswith(".")
        assert plot.table is not None or plot.name.endswith("-plan"), plot.name
        assert f'<title id="{plot.name}-title">' in plot.svg
        assert "#000000" not in plot.svg
        assert "currentColor" in plot.svg


EVIL = ('<script>alert("1")</script>', "\"><img src=x onerror='alert(2)'>{{ 7 * 7 }} $\\frac{$ </title>")


def test_names_are_text_whatever_they_are() -> None:
    """Classes, the dataset and options with HTML, JavaScript, template and formula syntax in their names."""
    plain, evil = page_of(), small_page(name=EVIL[0], classes=EVIL, options={EVIL[1]: EVIL[0]})
    expected, found = Elements(plain.html()), Elements(evil.html())
    assert [tag for tag, _ in found.found] == [tag for tag, _ in expected.found]
    names = {name for _, attributes in found.found for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    text = "".join(found.text)
    assert EVIL[0] in text
    assert "49" not in text.split("{{ 7 * 7 }}")[0][-5:]
    assert "{{ 7 * 7 }}" in text


def test_sums_are_shown_and_exact() -> None:
    found = tables(page_of())
    values = {str(name): value for name, value in found["Sum of the contributions"].rows}
    assert abs(values["residual of the sum"]) < 1e-9
    total = sum(
        value for name, value in values.items() if not name.startswith(("score of star", "score of cycle", "residual"))
    )
    score = next(value for name, value in values.items() if name.startswith(("score of star", "score of cycle")))
    assert total == pytest.approx(score, abs=1e-9)


def test_graphs_that_were_asked_for() -> None:
    data = small_report_data()
    assert chosen_graphs(data, ["17", "3"]) == {17: "requested", 3: "requested"}
    with pytest.raises(ValueError, match="--graph 99: no such graph"):
        chosen_graphs(data, ["99"])


def test_telling_graphs_are_explained() -> None:
    """Those of the test part alone, each once, with the reason."""
    page = page_of()
    (section,) = [section for section in page.sections if section.name == "explanations"]
    reasons = [part.title.rpartition(" – ")[2] for part in section.parts]
    assert "most uncertain" in reasons or "most certain wrong prediction" in reasons
    numbers = [int(re.findall(r"Graph (\d+)", part.title)[0]) for part in section.parts]
    assert len(set(numbers)) == len(numbers)
    assert all(14 <= number < 20 for number in numbers)


def test_points_of_the_map_are_all_graphs_once() -> None:
    (plot,) = [plot for plot in plots(page_of()) if plot.points]
    assert sorted(chain(*plot.points["groups"])) == list(range(20))
    assert len(plot.points["texts"]) == 20
    drawing = ElementTree.fromstring(plot.svg)
    for number, group in enumerate(plot.points["groups"]):
        (marks,) = drawing.iterfind(f".//{SVG}g[@id='map-points-{number}']")
        in_defs = set(chain(*(defs.iter() for defs in marks.iter(f"{SVG}defs"))))
        drawn = [mark for mark in marks.iter() if mark.tag in (f"{SVG}use", f"{SVG}path") and mark not in in_defs]
        assert len(drawn) == len(group)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 20, 0.0, 0.1611), (19, 19, 0.8318, 1.0)]
)
def test_wilson_interval(right: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(right, count) == pytest.approx((low, high), abs=1e-4)


def test_long_tables_are_cut() -> None:
    table = Table(["n"], [[n] for n in range(777)])
    assert (len(table.shown), table.left_out) == (500, 277)


def test_a_page_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "page.html"
    Page("a title", "a lead").write(path)
    before = path.read_text()

    def fails(self: Page) -> Any:
        raise RuntimeError

    monkeypatch.setattr(Page, "html", fails)
    with pytest.raises(RuntimeError):
        Page("another", "lead").write(path)
    assert path.read_text() == before


def test_report_data_is_what_the_model_says() -> None:
    data = small_report_data()
    for part, dataset in data.parts.items():
        chosen = data.part == part
        np.testing.assert_allclose(data.outputs[chosen], data.trained.outputs(dataset), atol=1e-12)
        np.testing.assert_allclose(data.distances[chosen], data.trained.embed(dataset), atol=1e-12)
    assert data.names == [str(number) for number in range(20)]

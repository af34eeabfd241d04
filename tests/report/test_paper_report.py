"""The experiments on one page."""

from pathlib import Path

import pytest

from tests.paper.test_figures import invented
from tfgw.cli import main
from tfgw.report import paper_report as module
from tfgw.report.page import Plot, Text


def test_what_has_records_is_shown_and_the_rest_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invented(tmp_path, "fig-4cycles")
    monkeypatch.setattr(module, "names", lambda: ["fig-4cycles", "fig-alpha", "table4"])
    assert main(["paper", "report", "--preset", "smoke", "--results", str(tmp_path)]) == 0
    html = (tmp_path / "report.html").read_text()
    assert html.count("<svg") == 1
    page = module.paper_report(tmp_path, options=module.Options(preset="smoke"))
    figure, missing, table = (section.blocks[0] for section in page.sections)
    assert isinstance(figure, Plot)
    assert figure.table is not None
    assert "4-CYCLES" in figure.table.rows[0]
    assert isinstance(missing, Text)
    assert "tfgw paper run fig-alpha" in missing.text
    assert isinstance(table, Text)
    assert "tfgw paper run table4" in table.text

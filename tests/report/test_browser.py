"""Reports in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import AXE, console, opened, requests, unavailable_reason, violations
from tests.report.small_reports import kernel_parts, small_page
from tfgw.report import model_report

REASON = unavailable_reason()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture(scope="module", params=["network", "kernel machine"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    name = "<i>small</i>"
    page = small_page(name=name) if request.param == "network" else model_report(*kernel_parts(), name=name)
    page.write(path)
    return path


def tip(browser: Any) -> str:
    return str(browser.execute_script("const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent"))


def test_points_answer_to_mouse_and_keyboard(report: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    with opened(report) as browser:
        marks = browser.find_elements("css selector", ".plane .mark")
        assert len(marks) == 20
        assert tip(browser) == ""
        browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", marks[3])
        ActionChains(browser).move_to_element(marks[3]).perform()
        shown = tip(browser)
        assert "predicted" in shown
        ActionChains(browser).click(marks[3]).perform()
        assert browser.find_element("css selector", ".kept").text.split("\n")[0] == shown.split("\n")[0]
        plane = browser.find_element("css selector", ".plane")
        plane.send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
        assert browser.find_element("css selector", ".kept").text.split("\n")[0] != shown.split("\n")[0]
        explained = browser.execute_script(
            "return Object.keys(JSON.parse(document.querySelector('.points').textContent).links)[0]"
        )
        browser.execute_script("document.querySelector('.plane').dispatchEvent(new Event('pointerleave'))")
        plane.send_keys(*[Keys.ARROW_RIGHT] * (int(explained) + 1), Keys.ENTER)
        target = browser.find_element("css selector", ".kept a").get_attribute("href").partition("#")[2]
        assert browser.find_elements("id", target)
        assert console(browser) == []
        assert requests(browser) == []


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1440, True)])
def test_nothing_sticks_out(report: Path, width: int, dark: bool) -> None:
    with opened(report, width=width, dark=dark) as browser:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(22, 24, 27)") == dark
        assert console(browser) == []


@pytest.mark.skipif(AXE is None, reason="needs axe-core: TFGW_AXE names its axe.min.js")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(report: Path, dark: bool) -> None:
    with opened(report, width=390, dark=dark) as browser:
        assert violations(browser) == []

"""The documentation covers what is public, and its links lead somewhere; ``make docs`` builds it with the rest."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

import tfgw
from tests.readme import blocks, run_blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
MODULES = sorted({name for name in tfgw.__all__ if inspect.ismodule(getattr(tfgw, name))} | {"plot", "report"})
WITHOUT_PAGE = {"paper"}  # a command, described in docs/experiments.md


SHOWN = [block for page in PAGES for block in blocks(page.read_text(), "python")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" in target:
            continue
        place = (page.parent / target).resolve()
        if place.parent == DOCS / "gallery":  # made of the examples
            place = ROOT / "examples" / ("GALLERY_HEADER.rst" if place.stem == "index" else f"{place.stem}.py")
        if place.parent == DOCS / "gallery" / "images":
            continue
        assert place.exists(), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_anchors_of_links_exist(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*\.md|)#([^)\s]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = {DOCS / "index"}
    for page in DOCS.rglob("*.md"):
        for toctree in re.findall(r"^```{toctree}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            listed |= {page.parent / line for line in toctree.splitlines() if line and not line.startswith(":")}
    assert {page.with_suffix("") for page in DOCS.rglob("*.md")} <= listed


@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_a_page_of_its_names(name: str) -> None:
    if name in WITHOUT_PAGE:
        return
    page = DOCS / "api" / f"{name}.md"
    assert f".. automodule:: tfgw.{name}\n   :members:" in page.read_text()
    assert re.search(rf"^{name}$", (DOCS / "api" / "index.md").read_text(), re.MULTILINE)


def value_of(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def public_names() -> list[str]:
    modules = [f"tfgw.{name}" for name in MODULES if name not in WITHOUT_PAGE]
    return [f"{module}.{name}" for module in modules for name in importlib.import_module(module).__all__]


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_says_what_it_is(name: str) -> None:
    attribute, value = name.rpartition(".")[2], value_of(name)
    if inspect.isclass(value) or inspect.isfunction(value):
        said = inspect.getdoc(value) or ""
        assert len(said) > 15
        assert not said.startswith(f"{attribute}(")  # what dataclasses and named tuples say of themselves


VALUES = [name for name in public_names() if not callable(value_of(name)) or get_args(value_of(name))]


@pytest.mark.parametrize("name", VALUES)
def test_a_public_value_has_an_entry_with_its_alternatives(name: str) -> None:
    """``automodule`` shows classes and functions only."""
    _, module, _ = name.split(".")
    page = (DOCS / "api" / f"{module}.md").read_text()
    assert f".. py:data:: {name}\n" in page
    entry = page.partition(f".. py:data:: {name}\n")[2].partition(".. py:data::")[0]
    value = value_of(name)
    alternatives = (
        get_args(value) if get_origin(value) is Literal else value if isinstance(value, (tuple, dict)) else ()
    )
    assert all(f'"{alternative}"' in entry for alternative in alternatives)


def test_there_are_values() -> None:
    assert {"tfgw.ot.START_KINDS", "tfgw.train.SCORE_NAMES", "tfgw.train.Task", "tfgw.datasets.Graphs"} <= set(VALUES)


@pytest.mark.parametrize("name", [name for name in tfgw.__all__ if inspect.isfunction(getattr(tfgw, name))])
def test_a_function_of_the_package_itself_has_an_entry(name: str) -> None:
    assert f".. autofunction:: tfgw.{name}\n" in (DOCS / "api" / "tfgw.md").read_text()


@pytest.mark.parametrize("page", sorted((DOCS / "api").glob("*.md")), ids=lambda path: path.stem)
def test_an_example_of_the_reference_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_has_an_example(name: str) -> None:
    """On a page, in its docstring, or in that of its module; named tuples are what others return."""
    _, module, attribute = name.split(".")
    home = importlib.import_module(f"tfgw.{module}")
    value = getattr(home, attribute)
    if isinstance(value, type) and issubclass(value, tuple):
        return
    docstrings = (inspect.getdoc(home) or "", inspect.getdoc(value) or "")
    lines = [line for text in docstrings for line in text.splitlines() if line.lstrip().startswith(">>>")]
    shown = [*SHOWN, *lines]
    assert re.search(rf"\b{attribute}\b", "\n".join(shown))

"""A page as data, and its conversion to HTML, with all text escaped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfgw import __version__
from tfgw.datasets.paths import written_whole
from tfgw.plot.svg_text import svg_element

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_TABLE = 500
"""Maximum number of rows of a table; further rows are only counted."""


@dataclass(frozen=True)
class Table:
    """Rows under a header; numbers are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    kind: str = "table"

    @property
    def shown(self) -> list[list[tuple[str, bool]]]:
        """The cells as text, and whether each is a number."""
        return [[(_text(cell), isinstance(cell, int | float)) for cell in row] for row in self.rows[:LONGEST_TABLE]]

    @property
    def left_out(self) -> int:
        """Number of rows that are not shown."""
        return max(0, len(self.rows) - LONGEST_TABLE)


@dataclass(frozen=True)
class Plot:
    """A figure with a caption, an alternative text, and a table of its numbers."""

    name: str
    figure: "Figure"
    alt: str
    caption: str = ""
    table: Table | None = None
    points: Any = None
    """For a map: information about each point, and the points of each group of markers."""
    kind: str = "plot"

    @cached_property
    def svg(self) -> str:
        """The figure as SVG."""
        return svg_element(self.figure, name=self.name, title=self.alt)


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Tile:
    """A highlighted number."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page with a heading; its parts have headings one level below."""

    name: str
    title: str
    blocks: Sequence[Table | Plot | Text]
    parts: Sequence["Section"] = ()


@dataclass(frozen=True)
class Page:
    """The content of a page."""

    title: str
    lead: str
    tiles: Sequence[Tile] = ()
    sections: Sequence[Section] = field(default=())

    def html(self) -> str:
        """Return the page as a self-contained HTML file."""
        try:
            from jinja2 import Environment, PackageLoader
            from markupsafe import Markup
        except ImportError as error:
            raise ImportError("jinja2 is not installed; pip install 'tfgw[report]'") from error
        environment = Environment(
            loader=PackageLoader("tfgw.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["markup"] = Markup  # only for our own SVG, in which matplotlib has escaped all text
        return environment.get_template("page.html").render(page=self, version=__version__)

    def write(self, path: Path) -> None:
        """Write the page to a file atomically."""
        text = self.html()
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _text(cell: Any) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}".replace("-", "−") if isinstance(cell, float) else str(cell)

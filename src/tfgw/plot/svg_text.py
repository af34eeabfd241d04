"""Conversion of figures to SVG elements of a page."""

import io
import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tfgw.plot.plot_style import INK, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COORDINATES = re.compile(r'\b(?:d|x|y|transform|style)="[^"]*"')
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")  # hundredths of a point are enough, and make files a third smaller


@styled
def svg_element(figure: "Figure", *, name: str, title: str) -> str:
    """Convert a figure to an ``<svg>`` element without background, in the colour of the surrounding text.

    Args:
        figure: Figure to convert.
        name: Prefix of all ids, which must be unique on a page.
        title: Alternative text.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(rf"{INK}|#000000", "currentColor", text)
    text = COORDINATES.sub(lambda found: " ".join(LONG_NUMBER.sub(r"\1", found[0]).split()), text)
    text = re.sub(r">\s+<", "><", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    head, body = text.split(">", 1)
    view_box = re.search(r'viewBox="[^"]*"', head)
    width = re.search(r'width="([\d.]+)pt"', head)
    assert view_box is not None
    assert width is not None
    size = f'style="width:{float(width[1]) * 4 / 3:.0f}px"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    begin = f'<svg {names} {view_box[0]} {size} role="img" aria-labelledby="{name}-title">'
    return f'{begin}<title id="{name}-title">{escape(title)}</title>{body}'

"""Image scraper of the gallery: collects matplotlib figures that a block of an example assigns to a name."""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def figures_of_block(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that are new since the previous block, and return the reStructuredText that shows them."""
    found = block_vars["example_globals"]
    drawn = found.setdefault("__figures__", [])
    new = [value for value in list(found.values()) if isinstance(value, Figure) and value not in drawn]
    drawn += new
    paths = []
    for figure, path in zip(new, block_vars["image_path_iterator"], strict=False):
        figure.savefig(path, dpi=110, bbox_inches="tight")
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])

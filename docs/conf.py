"""The documentation site: ``make docs`` builds it in build/docs, with warnings as errors."""

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))  # gallery_figures
os.environ["OMP_NUM_THREADS"] = "1"  # the same figures of the examples on every machine

project = "tfgw"
author = "the tfgw authors"
release = importlib.metadata.version("tfgw")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
suppress_warnings = ["myst.header"]  # the tables of results start with a heading of the second level

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # keeps signatures short; the docstrings describe the arguments
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_ivar = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
add_module_names = False
strip_signature_backslash = True  # without it, the underscore of attributes such as "classes_" is lost
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "example_extensions": {".py"},
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("tfgw",),
    "backreferences_dir": "gallery/backreferences",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "capture_repr": (),
    "show_memory": False,
    "download_all_examples": False,
    "min_reported_time": 1,
    "image_scrapers": ("gallery_figures.figures_of_block",),
    "reset_modules": (),
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "tfgw"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"start": [], "concepts": []}
copyright = "the tfgw authors"


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip fields of named tuples, which their docstring lists, and methods of scikit-learn for metadata routing."""
    generated = name.startswith("set_") and name.endswith("_request")
    return True if generated or type(obj).__name__ == "_tuplegetter" else None


def _with_examples(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Append the examples of the gallery that use a name to its docstring."""
    if what in ("class", "function"):
        backreferences = Path(app.srcdir) / "gallery" / "backreferences" / f"{name}.examples"
        if backreferences.exists() and backreferences.read_text().strip():
            lines += ["", ".. rubric:: Examples", "", f".. minigallery:: {name}", ""]


def _inline_formula(self: Any, node: Any) -> None:
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _formula(self: Any, node: Any) -> None:
    self.body.append(
        f'<div style="overflow-x: auto; margin-bottom: 1em">{tex2mathml(node.astext(), as_block=True)}</div>'
    )
    raise nodes.SkipNode


def setup(app: Any) -> None:
    # Browsers render MathML natively, so the site needs no external script.
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _with_examples)

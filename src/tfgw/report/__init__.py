"""One self-contained HTML page about a model, or about all experiments (extra ``report``).

>>> model_report(trained, {"training": train, "test": test}, name="mine").write(Path("report.html"))

subjects (graphs and what the model says of them) ─ sections ─▶ page (data) ─ templates/ ─▶ one file of HTML

Drawings are SVG from :mod:`tfgw.plot`; a few lines of JavaScript make points of the map answer to mouse and keyboard.
The page asks the network for nothing, and forbids itself to (its Content-Security-Policy).
"""

from tfgw.report.model_report import model_report
from tfgw.report.page import Page

__all__ = ["Page", "model_report"]

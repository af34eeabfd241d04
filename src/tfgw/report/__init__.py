"""Self-contained HTML reports about a model or about all experiments (extra ``report``).

>>> model_report(trained, {"training": train, "test": test}, name="mine").write(Path("report.html"))

report_data (graphs and outputs of the model) ─ sections ─▶ page ─ templates/ ─▶ one file of HTML

Plots are SVG from :mod:`tfgw.plot`. A few lines of JavaScript make the points of the map respond to mouse and keyboard.
The page makes no network requests, and its Content-Security-Policy forbids them.
"""

from tfgw.report.model_report import model_report
from tfgw.report.page import Page

__all__ = ["Page", "model_report"]

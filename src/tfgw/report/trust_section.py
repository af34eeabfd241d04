"""Reliability of the distances: the checks of ``tfgw check`` on a few graphs."""

import numpy as np
from torch import Tensor

from tfgw.report.page import Section, Table, Text
from tfgw.report.report_data import TEST, ReportData
from tfgw.train import check_model
from tfgw.train.diagnostics import SAME, relative

GRAPHS, STARTS = 24, 8


def trust(data: ReportData) -> Section:
    """Check invariance, gaps, spread over starts, and lower bounds."""
    part = TEST if TEST in data.parts else next(iter(data.parts))
    graphs = data.parts[part][:GRAPHS]
    found = check_model(data.trained, graphs, n_starts=STARTS)
    own, thorough = found.diagnosis, found.thorough
    pairs, spread = found.distances.numel(), relative(thorough.spreads, thorough.distances)
    rows = [
        ["renumbering nodes changes the distance", _share(found.renumbered > SAME), "of pairs",
         _verdict(not bool((found.renumbered > SAME).any()))],
        ["converged", _share(own.status == 0), "of pairs", _verdict(bool((own.status == 0).all()))],
        ["largest optimality gap", f"{float(relative(own.gaps, own.distances).max()):.1e}", "of the distance", ""],
        ["verified local minima", _share(own.local_minima), "of pairs", _verdict(bool(own.local_minima.all()))],
        [f"{STARTS} starts find a lower distance", _share(found.above_best > SAME), "of pairs", ""],
        ["  by (median, worst)", _two(found.above_best), "of the distance", ""],
        ["spread over starts (median, worst)", _two(spread), "of the distance", ""],
        ["distance to the global minimum, at most (median, worst)", _two(thorough.worst_excess), "of the distance", ""],
    ]  # fmt: skip
    others = "template" if data.kernel is None else "training graph, for each kind of distance"
    text = (
        f"Distances are local minima of a non-convex problem. The checks use {len(graphs)} {part} graphs,"
        f" {pairs} pairs of graph and {others}; tfgw check uses all graphs."
    )
    return Section(
        "trust", "Reliability of the distances", [Text(text), Table(["check", "result", "", "as expected"], rows)]
    )


def _share(flags: Tensor) -> str:
    return f"{100 * float(flags.double().mean()):.3g} %"


def _two(values: Tensor) -> str:
    array = values.numpy()
    return f"{100 * float(np.median(array)):.2g} %, {100 * float(array.max()):.2g} %"


def _verdict(is_good: bool) -> str:
    return "✓ yes" if is_good else "✗ no"

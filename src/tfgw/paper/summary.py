"""Summary of the records of a series."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tfgw.paper.calibration import calibration_error
from tfgw.paper.changes import changes_since
from tfgw.paper.comparison import confidence_interval
from tfgw.paper.machine import UNCOMMITTED
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.series import Series, finished
from tfgw.paper.time_estimates import TimeEstimates

ROUNDING = 1e-9
"""Difference of two accuracies that is due to rounding."""


class Summary(NamedTuple):
    """Results of one series, over the folds, hold-outs or seeds whose cells are all done.

    Attributes:
        test: Mean test accuracy.
        deviation: Sample standard deviation of the test accuracy over the units of ``over``.
        interval: 95 % confidence interval of ``test``, corrected for training graphs that units share; ``None`` for
            fewer than two units, or if their records have no numbers of graphs.
        fold_deviation: For the protocol ``paper``, deviation over the folds of one hold-out, averaged over hold-outs.
        validation: Mean validation accuracy of the selected checkpoint. It was used for selection and is not a result.
        train: Mean training accuracy.
        test_reached: For the protocol ``paper``, share of hold-outs whose mean test accuracy is at least the paper's.
        validation_reached: The same for the mean validation accuracy of the selected checkpoints.
        calibration_error: Expected calibration error over all test graphs; ``None`` if it was not measured everywhere.
        units: Number of folds, hold-outs or seeds.
        over: Name of the units, in the plural.
        done: Number of finished cells.
        failed: Number of failed cells.
        total: Number of cells of the series.
        epochs: Number of epochs; ``None`` if the model is not trained in epochs.
        configurations: Number of configurations in the grid.
        seconds: Total time of all finished cells.
        expected_seconds: Estimated total time of a series without finished cells; ``None`` if it is unknown.
        parameters: Number of learned parameters.
        ms_per_graph: Milliseconds per graph, with all graphs in one call.
        ms_one_graph: Milliseconds per graph, with one graph per call.
        gpu: Whether a GPU was used: ``"yes"``, ``"no"`` or ``"in part"``.
        machines: Descriptions of the machines.
        commits: Commits of the code that ran the cells; those with uncommitted changes end in ``-dirty``.
        uncommitted: Number of finished cells that were run with uncommitted changes.
        changes: Changes of the code since finished cells were run that would change their results, oldest first:
            ``commit``, ``date``, ``note``, and the number of ``cells``.
    """

    test: float | None
    deviation: float | None
    interval: tuple[float, float] | None
    fold_deviation: float | None
    validation: float | None
    train: float | None
    test_reached: float | None
    validation_reached: float | None
    calibration_error: float | None
    units: int
    over: str
    done: int
    failed: int
    total: int
    epochs: int | None
    configurations: int
    seconds: float
    expected_seconds: float | None
    parameters: int | None
    ms_per_graph: float | None
    ms_one_graph: float | None
    gpu: str
    machines: list[str]
    commits: list[str]
    uncommitted: int
    changes: list[dict[str, Any]]


def summarise(series: Series, records: Records, estimates: TimeEstimates | None = None) -> Summary:
    """Summarise one series; with ``estimates``, also the expected time of one that has not been run."""
    known = finished(series, records)
    done = [record for record in known if is_done(record)]
    groups = series.protocol.complete_groups(series, records) if series.has_cells else []
    averaged = [record for group in groups for record in group]
    tests = [np.array([record["result"]["test_accuracy"] for record in group]) for group in groups]
    last = done[-1] if done else {"result": {}, "run": {}}
    commits = [commit for record in done if (commit := record["run"].get("versions", {}).get("commit"))]
    return Summary(
        test=_mean([test.mean() for test in tests]),
        deviation=_deviation([test.mean() for test in tests]),
        interval=confidence_interval(series, groups),
        fold_deviation=_mean([test.std(ddof=1) for test in tests if len(test) > 1])
        if series.protocol.repeats_the_paper
        else None,
        validation=mean_result(averaged, "validation_accuracy"),
        train=mean_result(averaged, "train_accuracy"),
        test_reached=_share_reached(series, groups, "test_accuracy"),
        validation_reached=_share_reached(series, groups, "validation_accuracy"),
        calibration_error=_calibration_error(averaged),
        units=len(groups),
        over=series.protocol.over,
        done=len(done),
        failed=len(known) - len(done),
        total=series.total,
        epochs=series.configurations[0].get("epochs"),
        configurations=len(series.configurations),
        seconds=sum(record["run"].get("seconds", 0) for record in known),
        expected_seconds=None if known or estimates is None else _expected_seconds(series, estimates),
        parameters=last["result"].get("num_parameters"),
        ms_per_graph=last["run"].get("ms_per_graph"),
        ms_one_graph=last["run"].get("ms_one_graph"),
        gpu=_gpu(done),
        machines=sorted({_machine_text(record["run"]["machine"]) for record in done}),
        commits=sorted(set(commits)),
        uncommitted=sum(commit.endswith(UNCOMMITTED) for commit in commits),
        changes=_changes(done),
    )


def _expected_seconds(series: Series, estimates: TimeEstimates) -> float | None:
    cells = series.first_cells()
    return estimates.total(cells, waiting=series.total - len(cells)).seconds or None


def by_configuration(series: Series, records: Records) -> list[tuple[dict[str, Any], list[Record]]]:
    """Return each configuration with the records of its finished cells, for figures that compare configurations."""
    done = [record for record in finished(series, records) if is_done(record)]
    return [
        (configuration, [record for record in done if record["cell"]["configuration"] == configuration])
        for configuration in series.configurations
    ]


def mean_result(records: Iterable[Record], name: str) -> float | None:
    """Return the mean of one entry of the results; ``None`` if there are no records or a value is missing."""
    values: list[Any] = [record["result"][name] for record in records]
    return None if not values or None in values else float(np.mean(values))


def _share_reached(series: Series, groups: list[list[Record]], name: str) -> float | None:
    """Return the share of groups whose mean is at least the paper's; ``None`` if there is nothing to compare."""
    means = [mean_result(group, name) for group in groups]
    if series.published is None or not series.protocol.repeats_the_paper or not means or None in means:
        return None
    return float(np.mean([mean >= series.published - ROUNDING for mean in means if mean is not None]))


def _calibration_error(records: Iterable[Record]) -> float | None:
    bins = [record["result"].get("calibration_bins") for record in records]
    return calibration_error(bins) if bins and None not in bins else None


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _deviation(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _changes(done: list[Record]) -> list[dict[str, Any]]:
    counts = Counter(change for record in done for change in changes_since(record))
    return [
        {"commit": change.commit, "date": change.date.isoformat(), "note": change.note, "cells": cells}
        for change, cells in sorted(counts.items(), key=lambda item: item[0].date)
    ]


def _machine_text(machine: dict[str, Any]) -> str:
    gpu = f" with {machine['gpu']}" if machine["gpu"] else ""
    return f"{machine['processor']}, {machine['cores']} cores{gpu}"


def _gpu(done: list[Record]) -> str:
    used = {record["run"]["machine"]["gpu"] is not None for record in done}
    return "in part" if len(used) > 1 else "yes" if used == {True} else "no"

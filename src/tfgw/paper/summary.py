"""What the records of a series amount to."""

from typing import Any, NamedTuple

import numpy as np

from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.series import Series, finished


class Summary(NamedTuple):
    """Figures of one series; only folds, hold-outs or seeds all of whose cells are done count.

    Attributes:
        test: Mean test accuracy.
        deviation: Its sample standard deviation over what ``over`` names.
        fold_deviation: Protocol ``paper``: deviation over the folds around one hold-out, averaged over hold-outs.
        validation: Mean validation accuracy at the kept checkpoint. It chose the model and is no result.
        train: Mean training accuracy.
        units: How many folds, hold-outs or seeds ``deviation`` is over.
        over: What they are.
        done: Cells that are done.
        failed: Cells that failed.
        total: Cells of the series.
        epochs: Epochs of training; ``None`` if the model has none.
        configurations: Size of the grid.
        seconds: Time of all finished cells together.
        parameters: Learned numbers of the model.
        ms_per_graph: Milliseconds to predict one of many graphs at once.
        ms_one_graph: Milliseconds to predict a single graph.
        gpu: Whether a GPU was used: yes, no, or in part.
        machines: Descriptions of the machines.
    """

    test: float | None
    deviation: float | None
    fold_deviation: float | None
    validation: float | None
    train: float | None
    units: int
    over: str
    done: int
    failed: int
    total: int
    epochs: int | None
    configurations: int
    seconds: float
    parameters: int | None
    ms_per_graph: float | None
    ms_one_graph: float | None
    gpu: str
    machines: list[str]


UNITS = {"fair": "folds", "paper": "hold-outs", "synthetic": "seeds", "sweep": "runs", "timing": "runs"}


def summarise(series: Series, records: Records) -> Summary:
    """Summarise one series."""
    known = finished(series, records)
    done = [record for record in known if is_done(record)]
    groups = _complete_groups(series, records)
    tests = [np.array([record["result"]["test_accuracy"] for record in group]) for group in groups]
    last = done[-1] if done else {"result": {}, "run": {}}
    return Summary(
        test=_mean([test.mean() for test in tests]),
        deviation=_deviation([test.mean() for test in tests]),
        fold_deviation=_mean([test.std(ddof=1) for test in tests if len(test) > 1])
        if series.protocol == "paper"
        else None,
        validation=_mean_over(groups, "validation_accuracy"),
        train=_mean_over(groups, "train_accuracy"),
        units=len(groups),
        over=UNITS[series.protocol],
        done=len(done),
        failed=len(known) - len(done),
        total=series.total,
        epochs=series.configurations[0].get("epochs"),
        configurations=len(series.configurations),
        seconds=sum(record["run"].get("seconds", 0) for record in known),
        parameters=last["result"].get("num_parameters"),
        ms_per_graph=last["run"].get("ms_per_graph"),
        ms_one_graph=last["run"].get("ms_one_graph"),
        gpu=_gpu(done),
        machines=sorted({_described(record["run"]["machine"]) for record in done}),
    )


def by_configuration(series: Series, records: Records) -> list[tuple[dict[str, Any], list[Record]]]:
    """Each configuration with the records of its cells that are done; for figures that compare configurations."""
    done = [record for record in finished(series, records) if is_done(record)]
    return [
        (configuration, [record for record in done if record["cell"]["configuration"] == configuration])
        for configuration in series.configurations
    ]


def _complete_groups(series: Series, records: Records) -> list[list[Record]]:
    """For each unit that is complete, the records whose test accuracies are averaged."""
    if series.row.path is None or series.protocol == "timing":
        return []
    if series.protocol == "fair":
        groups = [_final_runs(series, fold, records) for fold in range(series.sizes["folds"])]
    elif series.protocol == "paper":
        groups = [_chosen_folds(series, number, records) for number in range(series.sizes["holdouts"])]
    else:
        groups = [_all_done([records.get(cell)]) for cell in series.first_cells()]
    return [group for group in groups if group is not None]


def _final_runs(series: Series, fold: int, records: Records) -> list[Record] | None:
    best = series.chosen(fold, records)
    return None if best is None else _all_done([records.get(cell) for cell in series.final_cells(fold, best)])


def _chosen_folds(series: Series, holdout: int, records: Records) -> list[Record] | None:
    """The folds of the configuration whose validation accuracy, averaged over the folds, is best."""
    found = _all_done([records.get(cell) for cell in series.holdout_cells(holdout)])
    if found is None:
        return None
    size = series.sizes["folds"]
    by_configuration = [found[start : start + size] for start in range(0, len(found), size)]
    return max(by_configuration, key=lambda folds: _mean_over([folds], "validation_accuracy") or 0.0)


def _all_done(found: list[Record | None]) -> list[Record] | None:
    done = [record for record in found if record is not None and is_done(record)]
    return done if len(done) == len(found) else None


def _mean_over(groups: list[list[Record]], name: str) -> float | None:
    values: list[Any] = [record["result"][name] for group in groups for record in group]
    return None if not values or None in values else float(np.mean(values))


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _deviation(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _described(machine: dict[str, Any]) -> str:
    gpu = f" with {machine['gpu']}" if machine["gpu"] else ""
    return f"{machine['processor']}, {machine['cores']} cores{gpu}"


def _gpu(done: list[Record]) -> str:
    used = {record["run"]["machine"]["gpu"] is not None for record in done}
    return "in part" if len(used) > 1 else "yes" if used == {True} else "no"

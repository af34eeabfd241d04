"""The table that needs no training: statistics of the datasets."""

from pathlib import Path
from typing import Any

from tfgw.datasets import Statistics, statistics
from tfgw.paper.cell_graphs import load_graphs
from tfgw.paper.experiment import Experiment, select


def statistics_data(experiment: Experiment, data_dir: Path | None, datasets: list[str] | None) -> list[dict[str, Any]]:
    """Return the paper's value and ours for every statistic of each dataset."""
    names = select(experiment.datasets, datasets, "dataset")
    unknown = [row.model for row in experiment.rows if row.model not in Statistics._fields]
    if unknown:
        raise ValueError(f"{experiment.name}: has no protocols, and {unknown[0]!r} is not a statistic of a dataset")
    found = {name: statistics(load_graphs(name, data_dir)) for name in names}
    return [
        {"dataset": name}
        | {row.model: [_first(row.paper.get(name)), getattr(ours, row.model)] for row in experiment.rows}
        for name, ours in found.items()
    ]


def statistics_rows(experiment: Experiment, data: list[dict[str, Any]]) -> list[list[str]]:
    """Return header and rows as text: the paper's value, then ours."""
    header = ["dataset", *(f"{row.title}, paper / ours" for row in experiment.rows)]
    body = [[entry["dataset"], *(_pair(*entry[row.model]) for row in experiment.rows)] for entry in data]
    return [header, *body]


def _first(values: tuple[float, ...] | None) -> float | None:
    return values[0] if values else None


def _pair(paper: float | None, ours: float) -> str:
    return " / ".join("-" if value is None else f"{value:.4g}" for value in (paper, ours))

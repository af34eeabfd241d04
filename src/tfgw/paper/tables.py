"""A table of the paper beside ours: the same figures as rows of text, as Markdown and as data."""

from collections.abc import Sequence
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.records import Records
from tfgw.paper.series import Options, Series
from tfgw.paper.summary import Summary, summarise
from tfgw.paper.time_estimates import format_duration

Cells = list[list[str]]

ACCURACY = ("dataset", "model", "paper", "ours, test", "± over", "validation", "train", "cells", "epochs", "time")
TIMING = ("dataset", "model", "parameters, paper", "ours", "ms per graph, paper", "ours", "ours, one at a time")


def table_rows(experiment: Experiment, series: Sequence[Series], records: Records) -> Cells:
    """Header and rows, as text."""
    summaries = [(one, summarise(one, records)) for one in series]
    if experiment.unit == "timing":
        return [list(TIMING), *(_timing(one, summary) for one, summary in summaries)]
    scale, digits = (100, 1) if experiment.unit == "percent" else (1, 2)
    return [list(ACCURACY), *(_accuracy(one, summary, scale, digits) for one, summary in summaries)]


def table_data(series: Sequence[Series], records: Records) -> list[dict[str, Any]]:
    """One entry per series, for machines."""
    return [
        {
            "dataset": one.dataset,
            "model": one.row.model,
            "protocol": one.protocol,
            "paper": one.row.paper.get(one.dataset),
            **summarise(one, records)._asdict(),
        }
        for one in series
    ]


def caption(experiment: Experiment, options: Options, series: Sequence[Series], records: Records) -> list[str]:
    """What a reader must know to read the table."""
    protocol = series[0].protocol
    totals = [summarise(one, records) for one in series]
    done, failed, total = (sum(getattr(one, name) for one in totals) for name in ("done", "failed", "total"))
    missing = f", {failed} failed" if failed else ""
    grouped = ", isomorphic graphs kept together" if options.grouped else ""
    splits = ", splits from a file" if options.splits is not None else ""
    lines = [
        f"{experiment.title}.",
        f"Protocol `{protocol}`{grouped}{splits}, preset `{options.preset}`; {done} of {total} cells done{missing}.",
    ]
    lines.append(EXPLAINED[protocol])
    if protocol in ("fair", "paper"):
        lines.append(
            "`validation` is the accuracy at the checkpoint that it chose: it overstates, and is no result. "
            "`train` is the accuracy on the training graphs of the same models."
        )
    if longer := _longer_training(experiment, series, options.preset):
        lines.append(f"Trained for fewer `epochs` than the paper's {' or '.join(map(str, longer))}.")
    if any(one.gpu != "no" for one in totals):
        lines.append("Cells of rows whose time is marked * ran on a GPU, all or some.")
    if machines := sorted({name for one in totals for name in one.machines}):
        lines.append(f"Machines: {'; '.join(machines)}. `time` is that of all cells together.")
    notes = {one.row.title: one.row.note for one in series if one.row.note}
    return lines + [f"{title}: {note}." for title, note in notes.items()]


EXPLAINED = {
    "timing": (
        "Ours on one thread: all graphs of the dataset in one call, and one graph per call; conversion of the graphs, "
        "checks and canonical order included."
    ),
    "fair": "Ours: mean over the test folds of the mean of the final runs; ± the standard deviation over folds.",
    "paper": (
        "Ours: mean over hold-outs of the mean of the fold models that predict them; ± the standard deviation over "
        "hold-outs, then in brackets that over the folds around one hold-out."
    ),
    "sweep": "Ours: mean and standard deviation over all configurations and test folds; nothing is chosen.",
    "synthetic": "Ours: mean and standard deviation over generated datasets; the weights of the last epoch are kept.",
}


def _longer_training(experiment: Experiment, series: Sequence[Series], preset: str) -> list[int]:
    """The paper's numbers of epochs, where those of the preset are smaller."""
    found = set()
    for one in series:
        if one.row.by_epochs and one.protocol != "timing":
            ours, papers = (experiment.setting(one.row, one.dataset, name, "epochs") for name in (preset, "full"))
            if ours < papers:
                found.add(papers)
    return sorted(found)


def markdown(rows: Cells) -> str:
    """Rows as a Markdown table."""
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _accuracy(series: Series, summary: Summary, scale: int, digits: int) -> list[str]:
    def show(value: float | None) -> str:
        return "-" if value is None else f"{scale * value:.{digits}f}"

    paper = series.row.paper.get(series.dataset)
    ours = show(summary.test)
    if summary.deviation is not None:
        ours += f" ± {show(summary.deviation)}"
    if summary.fold_deviation is not None:
        ours += f" ({show(summary.fold_deviation)})"
    return [
        series.dataset,
        series.row.title,
        "-" if paper is None else f"{paper[0]:.{digits}f} ± {paper[1]:.{digits}f}",
        ours,
        f"{summary.units} {summary.over if summary.units > 1 else summary.over[:-1]}" if summary.units else "-",
        show(summary.validation),
        show(summary.train),
        _cells(summary),
        "-" if summary.epochs is None or summary.total == 0 else str(summary.epochs),
        format_duration(summary.seconds) + ("" if summary.gpu == "no" else "*") if summary.done else "-",
    ]


def _timing(series: Series, summary: Summary) -> list[str]:
    paper = series.row.paper[series.dataset]
    thousands = "-" if summary.parameters is None else f"{summary.parameters / 1000:.1f}k ({summary.parameters:,})"
    times = [f"{time:.2f}" if time is not None else "-" for time in (summary.ms_per_graph, summary.ms_one_graph)]
    return [series.dataset, series.row.title, f"{paper[0]:.1f}k", thousands, f"{paper[1]}", *times]


def _cells(summary: Summary) -> str:
    failed = f" ({summary.failed} failed)" if summary.failed else ""
    return f"{summary.done}/{summary.total}{failed}"

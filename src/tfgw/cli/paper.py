"""``tfgw paper list``, ``run``, ``show``, ``plot``, ``pack``."""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from textwrap import shorten

from tfgw.cli.output import Answer, table
from tfgw.paper.engines import Share, share
from tfgw.paper.estimates import in_words
from tfgw.paper.experiment import Experiment, load_experiment, names
from tfgw.paper.records import Records
from tfgw.paper.run import Outcome, outlook, run
from tfgw.paper.series import Options, Series, plan
from tfgw.paper.statistics_table import statistics_data, statistics_rows
from tfgw.paper.summary import summarise
from tfgw.paper.tables import caption, markdown, table_data, table_rows
from tfgw.paper.work import Place


def list_(args: argparse.Namespace) -> Answer:
    """All experiments."""
    experiments = [load_experiment(name) for name in names()]
    data = [
        {
            "name": experiment.name,
            "title": experiment.title,
            "protocols": experiment.protocols,
            "datasets": experiment.datasets,
            "models": [row.model for row in experiment.rows if row.path],
        }
        for experiment in experiments
    ]
    rows = [[experiment.name, experiment.title, ", ".join(experiment.protocols)] for experiment in experiments]
    return Answer(data, table([["name", "what", "protocols"], *rows]))


def run_(args: argparse.Namespace) -> Answer:
    """Run what is missing, or say what that would be."""
    _, series = _series(args)
    records = Records(args.results)
    ahead = outlook(series, records, retry_failed=args.retry_failed)
    is_timing = series[0].protocol == "timing"  # one after the other, on one thread
    split = share(ahead.cells, jobs=1 if is_timing else args.jobs, accelerator=args.accelerator, per_gpu=args.per_gpu)
    if args.dry_run:
        return _dry(ahead.cells, ahead.unknown, ahead.seconds, split)
    place = Place(
        results=args.results.resolve(),
        data_dir=args.data_dir and args.data_dir.expanduser().resolve(),
        splits=args.splits and args.splits.resolve(),
        accelerator=args.accelerator,
        threads=1 if is_timing else split.threads,
    )
    outcome = run(
        series,
        place,
        split,
        engine=args.engine,
        address=args.address,
        retry_failed=args.retry_failed,
        progress_bar=sys.stderr.isatty(),
    )
    return _report(outcome, args)


def show_(args: argparse.Namespace) -> Answer:
    """A table, as text or Markdown."""
    experiment = load_experiment(args.experiment)
    if experiment.unit == "statistics":
        data = statistics_data(experiment, args.data_dir, args.dataset)
        rows, lines = statistics_rows(experiment, data), [f"{experiment.title}."]
    else:
        series, records = _series(args)[1], Records(args.results)
        if args.done:
            series = [one for one in series if summarise(one, records).done]
            if not series:
                raise ValueError(f"no cell is done yet: tfgw paper run {args.experiment}")
        data = table_data(series, records)
        rows, lines = table_rows(experiment, series, records), caption(experiment, _options(args), series, records)
    if args.markdown:
        return Answer(data, "\n\n".join([f"## {lines[0]}", *lines[1:], markdown(rows)]))
    return Answer(data, "\n".join([*lines, "", table(rows)]))


def plot_(args: argparse.Namespace) -> Answer:
    """Draw a figure."""
    experiment, series = _series(args)
    if experiment.figure is None:
        raise ValueError(f"{experiment.name} is a table: tfgw paper show {args.experiment}")
    from tfgw.paper.figures.drawing import save

    path: Path = args.output or Path(f"{experiment.name}.png")
    module, _, name = experiment.figure.partition(":")
    draw = getattr(import_module(module), name)
    save(draw(experiment, series, Records(args.results), args.data_dir), path)
    return Answer({"figure": str(path)}, f"{experiment.title}: {path}")


def pack_(args: argparse.Namespace) -> Answer:
    """One file for the records of each dataset and class."""
    records = Records(args.results)
    for folder in args.take_over:
        records.take_over(Records(folder))
    count = records.pack()
    return Answer({"records": count}, f"{count} records in {args.results}")


def _options(args: argparse.Namespace) -> Options:
    return Options(preset=args.preset, protocol=args.protocol, grouped=args.group_isomorphic, splits=args.splits)


def _series(args: argparse.Namespace) -> tuple[Experiment, list[Series]]:
    experiment = load_experiment(args.experiment)
    if experiment.unit == "statistics":
        raise ValueError(f"{experiment.name} needs no runs: tfgw paper show {args.experiment}")
    return experiment, plan(experiment, _options(args), datasets=args.dataset, models=args.model)


def _dry(cells: int, unknown: int, seconds: float, split: Share) -> Answer:
    data = {"cells": cells, "unknown": unknown, "core_seconds": seconds, **split._asdict()}
    text = f"{cells} cells to run, {split.jobs} at a time with {split.threads} threads each"
    if cells > unknown:
        text += f"\nby what such cells took so far: {in_words(seconds / split.jobs)}"
    if unknown:
        text += f"\n{unknown} cells are like none that was measured, their time is unknown"
    return Answer(data, text)


def _report(outcome: Outcome, args: argparse.Namespace) -> Answer:
    failed = [{"cell": record["cell"], "error": record["error"]} for record in outcome.failed]
    data = {"ran": outcome.done, "total": outcome.total, "failed": failed, "results": str(args.results)}
    text = f"{outcome.done} cells run, {outcome.total} in all; tfgw paper show {args.experiment}"
    for entry in failed[:5]:
        cell = entry["cell"]
        error = shorten(entry["error"].splitlines()[0], 200, placeholder=" …")
        text += f"\nfailed: {cell['dataset']}, {cell['model']}, fold {cell['fold']}: {error}"
    if failed:
        text += f"\n{len(failed)} cells failed; --retry-failed tries them again"
    if any(entry["error"].startswith("OutOfMemoryError") for entry in failed):
        text += ", --per-gpu N lets fewer share a GPU"
    return Answer(data, text, code=1 if failed else 0)

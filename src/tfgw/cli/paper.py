"""``tfgw paper list``, ``run``, ``check``, ``show``, ``compare``, ``plot``, ``report``, ``pack``."""

import argparse
import sys
from importlib import import_module
from math import exp
from pathlib import Path
from textwrap import shorten
from typing import Any

from tfgw.cli.comparison_text import comparison_text
from tfgw.cli.output import CommandResult, table
from tfgw.cli.repetition_text import repetition_text
from tfgw.paper.changes import supersedes
from tfgw.paper.comparison import Ranking, differences, ranking, unit_groups
from tfgw.paper.engines import Allocation, allocate
from tfgw.paper.experiment import Experiment, load_experiment, names
from tfgw.paper.machine import machine
from tfgw.paper.plan import chosen_protocol, plan
from tfgw.paper.protocols import Protocol
from tfgw.paper.records import Records
from tfgw.paper.repetition import draw_finished, repeat
from tfgw.paper.run_context import RunContext
from tfgw.paper.runner import Forecast, Outcome, RerunPolicy, forecast, run
from tfgw.paper.series import Options, Series
from tfgw.paper.statistics_table import statistics_data, statistics_rows
from tfgw.paper.summary import summarise
from tfgw.paper.tables import caption, markdown, other_protocols, own_folds, table_data, table_rows
from tfgw.paper.time_estimates import TimeEstimates, format_duration
from tfgw.paper.trust import check_trusted


def list_experiments(args: argparse.Namespace) -> CommandResult:
    """List all experiments."""
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
    return CommandResult(data, table([["name", "title", "protocols"], *rows]))


def run_cells(args: argparse.Namespace) -> CommandResult:
    """Run the missing cells, or count them (``--dry-run``)."""
    experiment, protocol, series = _plan(args)
    if (remark := own_folds(series, _options(args))) is not None:
        print(f"tfgw: {remark}", file=sys.stderr)
    records = Records(args.results)
    rerun = RerunPolicy(failed=args.retry_failed, changed=args.changed)
    ahead = forecast(series, records, machine(args.accelerator), rerun)
    allocation = _allocation(ahead.cells, protocol, args)
    if args.dry_run:
        return _dry_run(ahead, allocation)
    if not args.trust:
        check_trusted(experiment)
    context = _context(allocation, protocol, args)
    outcome = run(
        series,
        context,
        allocation,
        engine=args.engine,
        address=args.address,
        rerun=rerun,
        progress_bar=sys.stderr.isatty(),
    )
    return _report(outcome, args)


def check_cells(args: argparse.Namespace) -> CommandResult:
    """Run random finished cells again, and compare the results with their records."""
    experiment, protocol, series = _plan(args)
    if not args.trust:
        check_trusted(experiment)
    records = Records(args.results)
    drawn = draw_finished(series, records, count=args.cells, seed=args.seed)
    if not drawn:
        raise ValueError(f"no cell is finished; run: tfgw paper run {args.experiment}")
    allocation = _allocation(len(drawn), protocol, args)
    context = _context(allocation, protocol, args)
    found = list(repeat(drawn, records, context, jobs=allocation.jobs))
    data = [repetition._asdict() | {"same_machine": repetition.same_machine} for repetition in found]
    is_wrong = any(one.error is not None or (one.same_machine and not one.equal) for one in found)
    return CommandResult(data, repetition_text(experiment, found), code=1 if is_wrong else 0)


def show_table(args: argparse.Namespace) -> CommandResult:
    """Print a table, as text or Markdown."""
    experiment = load_experiment(args.experiment)
    if not experiment.needs_runs:
        data = statistics_data(experiment, args.data_dir, args.dataset)
        return _table(data, statistics_rows(experiment, data), [f"{experiment.title}."], args)
    _, protocol, series = _plan(args)
    records = Records(args.results)
    estimates = TimeEstimates(records, machine("cpu"))
    summaries = [(one, summarise(one, records, estimates)) for one in series]
    if args.done:
        summaries = [(one, summary) for one, summary in summaries if summary.done]
        if not summaries:
            raise ValueError(f"no cell is finished; run: tfgw paper run {args.experiment}")
    rows = table_rows(experiment, protocol, summaries)
    return _table(table_data(summaries), rows, caption(experiment, protocol, _options(args), summaries), args)


def compare_models(args: argparse.Namespace) -> CommandResult:
    """Compare pairs of models on each dataset, and rank all models over the datasets."""
    args.model = args.models or None
    experiment, protocol, series = _plan(args)
    records = Records(args.results)
    known = {one.row.model for one in series if one.has_cells and unit_groups(one, records)}
    models = [name for name in (args.models or [row.model for row in experiment.rows]) if name in known]
    missing = [name for name in args.models if name not in known]
    if missing or len(models) < 2:
        what = f"no records of {missing[0]}" if missing else "records of fewer than two models"
        raise ValueError(f"{what}; run: tfgw paper run {args.experiment}")
    found = differences(series, records, model=models[0], others=models[1:])
    ranks = ranking(series, records, models)
    if args.output is not None:
        _draw_ranks(ranks, {row.model: row.title for row in experiment.rows}, args.output)
    data = {
        "protocol": protocol.name,
        "differences": [difference._asdict() for difference in found],
        "ranking": None if ranks is None else ranks._asdict(),
    }
    remarks = other_protocols(protocol, [one for one in series if one.row.model in models])
    text = comparison_text(experiment, protocol, found, ranks, remarks, as_markdown=args.markdown)
    return CommandResult(data, text)


def plot_figure(args: argparse.Namespace) -> CommandResult:
    """Draw a figure."""
    experiment, _, series = _plan(args)
    if experiment.figure is None:
        raise ValueError(f"{experiment.name} is a table; use: tfgw paper show {args.experiment}")
    if not args.trust:
        check_trusted(experiment)
    from tfgw.paper.figures.drawing import save

    path: Path = args.output or Path(f"{experiment.name}.png")
    module, _, name = experiment.figure.partition(":")
    draw = getattr(import_module(module), name)
    save(draw(experiment, series, Records(args.results), args.data_dir), path)
    return CommandResult({"figure": str(path)}, f"{experiment.title}: {path}")


def write_report(args: argparse.Namespace) -> CommandResult:
    """Write all tables and figures to one HTML page."""
    from tfgw.report.paper_report import paper_report

    path: Path = args.output or args.results / "report.html"
    paper_report(args.results, data_dir=args.data_dir, options=Options(preset=args.preset)).write(path)
    return CommandResult({"report": str(path)}, f"wrote {path}; open it in a browser")


def pack_records(args: argparse.Namespace) -> CommandResult:
    """Collect the records of each dataset and model in one file."""
    records = Records(args.results)
    for folder in args.merge_from:
        records.merge_from(Records(folder), supersedes)
    count = records.pack()
    return CommandResult({"records": count}, f"{count} records in {args.results}")


def _draw_ranks(ranks: Ranking | None, titles: dict[str, str], path: Path) -> None:
    if ranks is None:
        raise ValueError("--output: no dataset has results of all these models")
    from tfgw.paper.figures.critical_differences import draw_ranks
    from tfgw.paper.figures.drawing import save

    save(draw_ranks(ranks, titles), path)


def _options(args: argparse.Namespace) -> Options:
    return Options(
        preset=args.preset,
        protocol=args.protocol,
        grouped=args.group_isomorphic,
        splits=args.splits,
        own_folds=args.own_folds,
    )


def _allocation(cells: int, protocol: Protocol, args: argparse.Namespace) -> Allocation:
    jobs = 1 if protocol.runs_alone else args.jobs
    return allocate(cells, jobs=jobs, accelerator=args.accelerator, per_gpu=args.per_gpu)


def _context(allocation: Allocation, protocol: Protocol, args: argparse.Namespace) -> RunContext:
    return RunContext(
        results=args.results.resolve(),
        data_dir=args.data_dir and args.data_dir.expanduser().resolve(),
        splits=args.splits and args.splits.resolve(),
        accelerator=args.accelerator,
        threads=1 if protocol.runs_alone else allocation.threads,
        jobs=allocation.jobs if getattr(args, "engine", "local") == "local" else None,
    )


def _plan(args: argparse.Namespace) -> tuple[Experiment, Protocol, list[Series]]:
    experiment, options = load_experiment(args.experiment), _options(args)
    series = plan(experiment, options, datasets=args.dataset, models=args.model)
    return experiment, chosen_protocol(experiment, options), series


def _table(data: Any, rows: list[list[str]], lines: list[str], args: argparse.Namespace) -> CommandResult:
    if args.markdown:
        return CommandResult(data, "\n\n".join([f"## {lines[0]}", *lines[1:], markdown(rows)]))
    return CommandResult(data, "\n".join([*lines, "", table(rows)]))


def _dry_run(ahead: Forecast, allocation: Allocation) -> CommandResult:
    time = ahead.time
    low, high = (time.seconds / allocation.jobs * exp(sign * time.deviation) for sign in (-1, 1))
    data = {"cells": ahead.cells, "unknown": time.unknown, "core_seconds": time.seconds, **allocation._asdict()}
    data |= {"seconds": time.seconds / allocation.jobs, "low": low, "high": high, "basis": time.basis}
    text = f"{ahead.cells} cells to run, {allocation.jobs} at a time, threads per cell: {allocation.threads}"
    if time.basis:
        text += f"\nestimated time: {format_duration(time.seconds / allocation.jobs)}"
        text += f" (68 % interval: {format_duration(low)} to {format_duration(high)})"
        text += "".join(f"\n- based on {basis}: {count} cells" for basis, count in time.basis.items())
    if time.unknown:
        text += f"\n{time.unknown} cells have no similar finished cell, so their time is unknown"
    return CommandResult(data, text)


def _report(outcome: Outcome, args: argparse.Namespace) -> CommandResult:
    failed = [{"cell": record["cell"], "error": record["error"]} for record in outcome.failed]
    data = {"ran": outcome.done, "total": outcome.total, "failed": failed, "missing": outcome.missing}
    data["results"] = str(args.results)
    text = f"{outcome.done} cells run, {outcome.total} in total; see: tfgw paper show {args.experiment}"
    for entry in failed[:5]:
        cell = entry["cell"]
        error = shorten(entry["error"].splitlines()[0], 200, placeholder=" …")
        text += f"\nfailed: {cell['dataset']}, {cell['model']}, fold {cell['fold']}: {error}"
    if failed:
        text += f"\n{len(failed)} cells failed; use --retry-failed to run them again"
    if any(entry["error"].startswith("OutOfMemoryError") for entry in failed):
        text += ", and --per-gpu N to run fewer cells per GPU"
    if outcome.missing:
        text += f"\n{outcome.missing} cells have no record; run the same command again"
    return CommandResult(data, text, code=1 if failed or outcome.missing else 0)

"""All tables and figures of the experiments on one page, from their records."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tfgw.paper.experiment import Experiment, load_experiment, names
from tfgw.paper.plan import chosen_protocol, plan
from tfgw.paper.records import Records
from tfgw.paper.series import Options
from tfgw.paper.statistics_table import statistics_data, statistics_rows
from tfgw.paper.summary import summarise
from tfgw.paper.tables import caption, table_rows
from tfgw.report.page import Page, Plot, Section, Table, Text

Blocks = list[Table | Plot | Text]


def paper_report(results: Path, *, data_dir: Path | None = None, options: Options | None = None) -> Page:
    """Create the report of all experiments; those without records show the command to run.

    Args:
        results: Folder of the records.
        data_dir: Folder of the datasets, for plots and statistics of graphs.
        options: Preset and protocol (default: those of ``tfgw paper show``).
    """
    records = Records(results)
    chosen = Options(preset="quick") if options is None else options
    sections = [_section(load_experiment(name), records, data_dir, chosen) for name in names()]
    return Page(
        title="TFGW: the paper's experiments",
        lead="Tables and figures of 'Template based Graph Neural Network with Optimal Transport Distances' (NeurIPS"
        " 2022): the paper's results and ours.",
        sections=sections,
    )


def _section(experiment: Experiment, records: Records, data_dir: Path | None, options: Options) -> Section:
    try:
        blocks = (_figure if experiment.figure else _table)(experiment, records, data_dir, options)
    except (ValueError, OSError) as error:
        blocks = [Text(f"Not available: {error}")]
    return Section(experiment.name, experiment.title, blocks)


def _figure(experiment: Experiment, records: Records, data_dir: Path | None, options: Options) -> Blocks:
    assert experiment.figure is not None
    module, _, name = experiment.figure.partition(":")
    draw = getattr(import_module(module), name)
    figure = draw(experiment, plan(experiment, options), records, data_dir)
    tables = _table(experiment, records, data_dir, options) if experiment.needs_runs else []
    numbers = next((block for block in tables if isinstance(block, Table)), None)
    how = f"tfgw paper plot {experiment.name}"
    return [Plot(experiment.name, figure, f"{experiment.title}.", how, numbers)]


def _table(experiment: Experiment, records: Records, data_dir: Path | None, options: Options) -> Blocks:
    if not experiment.needs_runs:
        return [_rows(statistics_rows(experiment, statistics_data(experiment, data_dir, None)))]
    protocol = chosen_protocol(experiment, options)
    summaries = [(series, summarise(series, records)) for series in plan(experiment, options)]
    summaries = [(series, summary) for series, summary in summaries if summary.done]
    if not summaries:
        return [Text(f"No cell is finished; run: tfgw paper run {experiment.name}")]
    lines = caption(experiment, protocol, options, summaries)
    return [*(Text(line) for line in lines[1:]), _rows(table_rows(experiment, protocol, summaries))]


def _rows(rows: Sequence[Sequence[str]]) -> Table:
    return Table(rows[0], rows[1:])

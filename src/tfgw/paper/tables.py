"""Tables with the paper's results and ours, as text, Markdown or data."""

from collections.abc import Iterable, Sequence
from typing import Any

from tfgw.paper.experiment import Experiment
from tfgw.paper.protocols import OLDER, Protocol
from tfgw.paper.series import Options, Series
from tfgw.paper.summary import Summary
from tfgw.paper.time_estimates import format_duration

Summaries = Sequence[tuple[Series, Summary]]


def table_rows(experiment: Experiment, protocol: Protocol, summaries: Summaries) -> list[list[str]]:
    """Return header and rows as text."""
    body = [protocol.row(series, summary, experiment.unit) for series, summary in summaries]
    return [list(protocol.columns), *body]


def table_data(summaries: Summaries) -> list[dict[str, Any]]:
    """Return one entry per series, as JSON data."""
    return [
        {
            "dataset": series.dataset,
            "model": series.row.model,
            "protocol": series.protocol.name,
            "paper": series.row.paper.get(series.dataset),
            "not_run": series.not_run,
            **summary._asdict(),
        }
        for series, summary in summaries
    ]


def caption(experiment: Experiment, protocol: Protocol, options: Options, summaries: Summaries) -> list[str]:
    """Return the lines of the caption."""
    found = [summary for _, summary in summaries]
    lines = [f"{experiment.title}.", _progress(protocol, options, summaries), *protocol.caption]
    planned = [summary for summary in found if summary.total > 0]
    if missing := sum(summary.done + summary.failed == 0 for summary in planned):
        text = f"Rows not run yet: {missing} of {len(planned)}"
        times = [summary.expected_seconds for summary in planned if summary.expected_seconds is not None]
        if times:
            text += (
                f", about {format_duration(sum(times))} of CPU time (estimated for the machine that made this table)"
            )
        lines.append(f"{text}.")
    lines += other_protocols(protocol, [series for series, _ in summaries])
    lines += protocol.remarks([series for series, _ in summaries])
    if protocol.depends_on_epochs and (longer := _longer_training(experiment, summaries, options.preset)):
        lines.append(f"Trained for fewer `epochs` than the paper's {' or '.join(map(str, longer))}.")
    if any(summary.gpu != "no" for summary in found):
        lines.append("Rows whose time is marked * were run on a GPU, entirely or partly.")
    if (remark := own_folds([series for series, _ in summaries], options)) is not None:
        lines.append(remark)
    if machines := sorted({name for summary in found for name in summary.machines}):
        lines.append(f"Machines: {'; '.join(machines)}. `time` is the total over all cells.")
    if uncommitted := [(series, one.uncommitted, one.done) for series, one in summaries if one.uncommitted]:
        lines.append(f"Cells that were run with uncommitted changes of the code: {_rows(uncommitted)}.")
    lines += _changes(summaries)
    notes = {series.row.title: series.row.note for series, _ in summaries if series.row.note}
    return lines + [f"{title}: {note}." for title, note in notes.items()]


def _changes(summaries: Summaries) -> list[str]:
    """Name the rows with cells that are older than a change of the code, for each change."""
    older: dict[tuple[str, str, str], list[tuple[Series, int, int]]] = {}
    for series, summary in summaries:
        for change in summary.changes:
            found = older.setdefault((change["date"], change["commit"], change["note"]), [])
            found.append((series, change["cells"], summary.done))
    return [
        f"{OLDER} older than {commit} ({note}): {_rows(rows)}." for (_, commit, note), rows in sorted(older.items())
    ]


def _rows(counts: Iterable[tuple[Series, int, int]]) -> str:
    return "; ".join(f"{series.dataset}, {series.row.title} ({count} of {done})" for series, count, done in counts)


def own_folds(series: Sequence[Series], options: Options) -> str | None:
    """Name the datasets without published splits if there are some for others, or if the user gave a folder of them."""
    own = sorted({one.dataset for one in series if one.splits is None})
    if not own or (options.splits is None and all(one.splits is None for one in series)):
        return None
    return f"There are no published splits of {', '.join(own)}: the folds are our own."


def _progress(protocol: Protocol, options: Options, summaries: Summaries) -> str:
    found = [summary for _, summary in summaries]
    done, failed, total = (sum(getattr(summary, name) for summary in found) for name in ("done", "failed", "total"))
    reasons = sum(series.not_run is not None for series, _ in summaries)
    grouped = ", isomorphic graphs grouped" if options.grouped else ""
    splits = ", published splits" if any(series.splits for series, _ in summaries) else ""
    failures = f", {failed} failed" if failed else ""
    instead = f"; {reasons} rows with a reason instead of cells" if reasons else ""
    how = f"Protocol `{protocol.name}`{grouped}{splits}, preset `{options.preset}`"
    return f"{how}; {done} of {total} cells done{failures}{instead}."


def other_protocols(protocol: Protocol, series: Sequence[Series]) -> list[str]:
    """Explain the rows that are measured under a protocol of their own."""
    titles: dict[Protocol, dict[str, None]] = {}
    for one in series:
        if one.protocol is not protocol:
            titles.setdefault(one.protocol, {})[one.row.title] = None
    return [f"Protocol `{other.name}`: {'; '.join(rows)}. {other.training}" for other, rows in titles.items()]


def _longer_training(experiment: Experiment, summaries: Summaries, preset: str) -> list[int]:
    """Return the paper's numbers of epochs that are larger than those of the preset."""
    found = set()
    for series, _ in summaries:
        if series.row.by_epochs:
            ours, papers = (experiment.setting(series.row, series.dataset, name, "epochs") for name in (preset, "full"))
            if papers != "recipe" and ours < papers:
                found.add(papers)
    return sorted(found)


def markdown(rows: list[list[str]]) -> str:
    """Format rows as a Markdown table."""
    header, *body = rows
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

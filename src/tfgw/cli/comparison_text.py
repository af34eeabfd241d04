"""The text of ``tfgw paper compare``."""

from collections.abc import Callable, Sequence

from tfgw.cli.output import table
from tfgw.paper.comparison import Difference, Ranking
from tfgw.paper.experiment import Experiment
from tfgw.paper.protocols import Protocol
from tfgw.paper.tables import markdown

TableFormat = Callable[[list[list[str]]], str]


def comparison_text(
    experiment: Experiment,
    protocol: Protocol,
    found: Sequence[Difference],
    ranks: Ranking | None,
    remarks: Sequence[str] = (),
    *,
    as_markdown: bool = False,
) -> str:
    """Format a table of differences and a table of ranks, each with a caption."""
    titles = {row.model: row.title for row in experiment.rows}
    as_table = markdown if as_markdown else table
    parts = [f"{'## ' if as_markdown else ''}{experiment.title}.", f"Protocol `{protocol.name}`.", *remarks]
    if found:
        parts.append(_differences(found, titles, protocol.over, as_table))
    else:
        parts.append("No dataset has at least two results for each of two models.")
    if ranks is not None:
        parts.append(_ranks(ranks, titles, as_table))
    return "\n\n".join(parts)


def _differences(found: Sequence[Difference], titles: dict[str, str], over: str, as_table: TableFormat) -> str:
    header = ["dataset", "model", "minus", over, "points", "95 % interval", "p", "p (Holm)"]
    rows = [
        [
            one.dataset,
            titles[one.model],
            titles[one.other],
            str(one.units),
            f"{100 * one.difference:+.1f}",
            f"{100 * one.low:+.1f} to {100 * one.high:+.1f}",
            f"{one.p:.3f}",
            f"{one.p_holm:.3f}",
        ]
        for one in found
    ]
    how = f"Paired over {over}, t-test with the correction of Nadeau and Bengio for overlapping training sets."
    return f"{how}\n\n{as_table([header, *rows])}"


def _ranks(ranks: Ranking, titles: dict[str, str], as_table: TableFormat) -> str:
    datasets = f"Average ranks over {', '.join(ranks.datasets)}"
    test = "" if ranks.p is None else f"; Friedman test: p = {ranks.p:.3f}"
    critical = (
        f"Ranks that differ by less than {ranks.critical_difference:.2f} do not differ significantly (Nemenyi test)."
    )
    rows = [[titles[model], f"{rank:.2f}"] for model, rank in zip(ranks.models, ranks.ranks, strict=True)]
    return f"{datasets}{test}.\n{critical}\n\n{as_table([['model', 'rank'], *rows])}"

"""The text of ``tfgw paper check``."""

from collections.abc import Sequence

from tfgw.cli.output import table
from tfgw.paper.experiment import Experiment, Unit
from tfgw.paper.repetition import Repetition


def repetition_text(experiment: Experiment, found: Sequence[Repetition]) -> str:
    """Format the cells that were run again as a table, with what has changed between the runs."""
    titles = {row.model: row.title for row in experiment.rows}
    header = ["dataset", "model", "split", "fold", "run", "record", "now", "difference", "± runs", "± folds", "result"]
    rows = [_row(one, titles[one.model], experiment.unit) for one in found]
    equal = sum(one.equal for one in found)
    lines = [f"{experiment.title}.", f"{len(found)} cells were run again; {equal} gave the same result."]
    lines += ["`±` are the standard deviations of the row over the runs of a fold, and over its folds.", ""]
    lines += [table([header, *rows])]
    changes = dict.fromkeys(
        f"{name}: {old} → {new}" for one in found for name, (old, new) in one.changed.items() if not one.equal
    )
    lines += ["", "Changes since the records that were not reproduced:", *changes] if changes else []
    lines += [f"failed: {one.dataset}, {titles[one.model]}: {one.error}" for one in found if one.error is not None]
    return "\n".join(lines)


def _row(one: Repetition, title: str, unit: Unit) -> list[str]:
    numbers = [str(one.cell[name]) for name in ("split_seed", "fold", "seed")]
    accuracies = [unit.show(value) for value in (one.old, one.new)]
    difference = "-" if one.difference is None else f"{unit.scale * one.difference:+.{unit.digits}f}"
    spreads = [unit.show(value) for value in (one.run_deviation, one.deviation)]
    return [one.dataset, title, *numbers, *accuracies, difference, *spreads, _verdict(one)]


def _verdict(one: Repetition) -> str:
    if one.error is not None:
        return "failed"
    if one.equal:
        return "equal"
    where = "on the same machine" if one.same_machine else "on another machine"
    return f"equal accuracy, {where}" if one.difference == 0 else f"different, {where}"

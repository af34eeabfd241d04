"""Training curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfgw.plot.plot_style import COLOURS, new_figure, styled
from tfgw.train import EpochRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def curves(history: Any) -> "Figure":
    """Plot loss, score, α and live template nodes by epoch.

    Args:
        history: A fitted estimator, or its ``history_``: one :class:`tfgw.train.EpochRecord` per epoch.
    """
    records: Sequence[EpochRecord] = getattr(history, "history_", history)
    if not records:
        raise ValueError("history: has no epochs")
    panels = [
        ("loss", {"training": "loss", "validation": "validation_loss"}),
        ("score", {"training": "score", "validation": "validation_score"}),
        ("α (1: structure)", {"α": "alpha"}),
        ("live template nodes", {"live nodes": "live_nodes"}),
    ]
    shown = [(title, lines) for title, lines in panels if _points(records, next(iter(lines.values())))]
    figure, axes = new_figure(len(shown), width=3.1, height=2.6)
    for axis, (title, lines) in zip(axes[0], shown, strict=True):
        for number, (name, field) in enumerate(lines.items()):
            points = _points(records, field)
            if points:
                style = {"color": COLOURS[number], "linestyle": ("-", "--")[number], "lw": 1.4}
                axis.plot(*zip(*points, strict=True), label=name, **style)
        axis.set(xlabel="epoch", title=title)
        axis.title.set_fontsize("medium")
        if len(axis.lines) > 1:
            axis.legend(fontsize="small")
    axes[0][-1].set_ylim(bottom=0) if shown[-1][0].startswith("template") else None
    return figure


def _points(records: Sequence[EpochRecord], field: str) -> list[tuple[int, float]]:
    values = ((record.epoch, getattr(record, field)) for record in records)
    return [(epoch, value) for epoch, value in values if value is not None]

"""Critical-difference diagram: average ranks of models, and bars over models without significant difference.

Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 7, 2006.
https://jmlr.org/papers/v7/demsar06a.html
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from tfgw.paper.comparison import Ranking, indistinguishable
from tfgw.plot.plot_style import COLOURS, INK, new_figure, styled

ROW = 0.3  # inches between two names


@styled
def draw_ranks(ranking: Ranking, titles: Mapping[str, str]) -> Any:
    """Plot the ranks; the better half of the models is named on the left of the axis, the others on the right."""
    count = len(ranking.models)
    runs = indistinguishable(ranking.ranks, ranking.critical_difference)
    half = (count + 1) // 2
    top = 1.6 + 0.5 * len(runs)  # in rows, from the axis to the first name
    figure, axes = new_figure(width=8.4, height=ROW * (half + top + 3.2))
    axis = axes[0, 0]
    axis.set(xlim=(1 - 0.5 * count, count + 0.5 * count), ylim=(half + top, -2.6))
    axis.axis("off")
    _ruler(axis, count, ranking.critical_difference)
    for number, (model, rank) in enumerate(zip(ranking.models, ranking.ranks, strict=True)):
        is_left = number < half
        y = top + (number if is_left else count - 1 - number)
        end = 1 - 0.04 * count if is_left else count + 0.04 * count
        axis.plot([rank, rank, end], [0, y, y], color=INK, lw=0.9)
        text = f"{titles.get(model, model)}  {rank:.2f}"
        axis.text(end, y, f"{text} " if is_left else f" {text}", ha="right" if is_left else "left", va="center")
    for number, (first, last) in enumerate(runs):
        y = 0.7 + 0.5 * number
        axis.plot([ranking.ranks[first] - 0.04, ranking.ranks[last] + 0.04], [y, y], color=COLOURS[0], lw=4)
    axis.set_title(_title(ranking), fontsize="medium")
    return figure


def _ruler(axis: Any, count: int, critical: float) -> None:
    axis.plot([1, count], [0, 0], color=INK, lw=1.2)
    for rank in range(1, count + 1):
        axis.plot([rank, rank], [-0.2, 0], color=INK, lw=1.2)
        if (rank - 1) % ceil(count / 10) == 0:
            axis.text(rank, -0.35, str(rank), ha="center", va="bottom")
    axis.plot([1, 1 + critical], [-1.7, -1.7], color=COLOURS[1], lw=2.5)
    axis.text(1 + critical / 2, -1.85, f"critical difference {critical:.2f}", ha="center", va="bottom")


def _title(ranking: Ranking) -> str:
    datasets = f"Average rank over {len(ranking.datasets)} dataset{'s' if len(ranking.datasets) > 1 else ''}"
    return f"{datasets}; bars join models without significant difference"

"""Common functions of the figures: required records, and saving."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfgw.datasets.paths import written_whole
from tfgw.paper.experiment import Experiment
from tfgw.paper.records import Record
from tfgw.paper.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; the file extension sets the format."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--output {path}: must end in {', '.join(FORMATS)}")
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=150)


def require(found: Any, experiment: Experiment, series: Series) -> None:
    """Raise an error with the command that creates the records of a figure if they are missing."""
    if not len(found):
        raise ValueError(
            f"no records of {series.row.model} on {series.dataset}; run: tfgw paper run {experiment.name}"
            f" --dataset {series.dataset} --model {series.row.model}"
        )


def percent(done: list[Record]) -> list[float]:
    """Test accuracies."""
    return [100 * record["result"]["test_accuracy"] for record in done]

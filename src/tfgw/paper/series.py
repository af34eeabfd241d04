"""The cells behind one result of a table: a model on a dataset under a protocol."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Row
from tfgw.paper.records import Record, Records

if TYPE_CHECKING:
    from tfgw.paper.protocols.protocol import Protocol


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a user besides experiment, datasets and models; they become part of every cell.

    Args:
        preset: ``"smoke"``, ``"quick"`` or ``"full"``.
        protocol: Name of a protocol of the experiment (default: the first).
        grouped: Whether to keep isomorphic graphs on the same side of every split.
        splits: File or folder of published splits, for protocols that support them. ``None`` means those that the
            experiment names.
        own_folds: Whether to use folds of our own even if the experiment names published splits.
    """

    preset: str = "quick"
    protocol: str | None = None
    grouped: bool = False
    splits: Path | None = None
    own_folds: bool = False


@dataclass(frozen=True, kw_only=True)
class Series:
    """One row of an experiment on one dataset; the protocol defines its cells.

    Args:
        row: The model.
        dataset: Name of the dataset.
        protocol: Protocol of the measurement.
        configurations: Constructor parameters of the configurations, in the order of the grid.
        sizes: Values of the preset for ``folds``, ``graphs``, ``holdouts``, ``runs`` and ``seeds``.
        grouped: Whether to keep isomorphic graphs on the same side of every split.
        splits: SHA-256 of the file of published splits. ``None`` means random splits.
        published: The paper's mean accuracy, from 0 to 1. ``None`` if the paper has none.
        not_run: Reason why the series has no cells. ``None`` if it has, or if the row has no class.
    """

    row: Row
    dataset: str
    protocol: "Protocol"
    configurations: list[dict[str, Any]]
    sizes: dict[str, int]
    grouped: bool = False
    splits: str | None = None
    published: float | None = None
    not_run: str | None = None

    @property
    def has_cells(self) -> bool:
        """Whether there is anything to run; a row without a class only shows the paper's results."""
        return self.row.path is not None and self.not_run is None

    @property
    def total(self) -> int:
        """Number of cells, including those that become known after others are done."""
        return self.protocol.total(self) if self.has_cells else 0

    def first_cells(self) -> list[Cell]:
        """Return the cells that do not depend on others."""
        return self.protocol.first_cells(self) if self.has_cells else []

    def ready_cells(self, records: Records) -> list[Cell]:
        """Return all known cells."""
        return self.protocol.ready_cells(self, records) if self.has_cells else []


def finished(series: Series, records: Records) -> list[Record]:
    """Return the records of the known cells of a series."""
    found = (records.get(cell) for cell in series.ready_cells(records))
    return [record for record in found if record is not None]

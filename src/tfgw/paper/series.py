"""The cells behind one value of a table: a model on a dataset under a protocol."""

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
    """What a user chooses besides experiment, datasets and models; it becomes part of every cell.

    Args:
        preset: ``"smoke"``, ``"quick"`` or ``"full"``.
        protocol: Name of one of the experiment's protocols; ``None``: its first.
        grouped: Whether isomorphic graphs stay on the same side of every split.
        splits: File or folder of published splits, for a protocol that takes them.
    """

    preset: str = "quick"
    protocol: str | None = None
    grouped: bool = False
    splits: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """One row of an experiment on one dataset; the protocol says which cells that makes.

    Args:
        row: The model.
        dataset: Name of the dataset.
        protocol: How it is measured.
        configurations: Constructor parameters that are compared with each other, in the order of the grid.
        sizes: The preset's ``folds``, ``graphs``, ``holdouts``, ``runs`` and ``seeds``.
        grouped: Whether isomorphic graphs stay on the same side of every split.
        splits: SHA-256 of the file of published splits; ``None``: splits are drawn.
    """

    row: Row
    dataset: str
    protocol: "Protocol"
    configurations: list[dict[str, Any]]
    sizes: dict[str, int]
    grouped: bool = False
    splits: str | None = None

    @property
    def has_cells(self) -> bool:
        """Whether there is anything to run: a row without a class only quotes the paper."""
        return self.row.path is not None

    @property
    def total(self) -> int:
        """Number of cells, including those that are only known once others are done."""
        return self.protocol.total(self) if self.has_cells else 0

    def first_cells(self) -> list[Cell]:
        """The cells that depend on no others."""
        return self.protocol.first_cells(self) if self.has_cells else []

    def ready_cells(self, records: Records) -> list[Cell]:
        """All cells that are known by now."""
        return self.protocol.ready_cells(self, records) if self.has_cells else []


def finished(series: Series, records: Records) -> list[Record]:
    """Records of the cells of a series that are known by now."""
    found = (records.get(cell) for cell in series.ready_cells(records))
    return [record for record in found if record is not None]

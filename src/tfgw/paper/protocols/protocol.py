"""What a protocol is."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from tfgw.paper.cell_graphs import Parts
from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Unit
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary


class Measurement(NamedTuple):
    """What is recorded about a trained model: its result, and times, which differ between machines."""

    result: dict[str, Any]
    times: dict[str, float]


class Protocol(ABC):
    """How the values of a table come about. Protocols have no state: a method is a function of its arguments.

    ========================================  =====================================================
    which cells a series has                  ``first_cells``, ``ready_cells``, ``total``
    what a cell does with its classifier      ``check_inputs``, ``parts``, then fit, then ``measure``
    how the records of cells are summarised   ``complete_groups``, ``unit``, ``over``, ``shows_fold_deviation``
    what a table says                         ``columns``, ``row``, ``caption``
    ========================================  =====================================================

    Methods that take a series are only called for one that has cells.

    Attributes:
        name: Name on the command line and in the files of the experiments.
        cell_name: Name in the cells, and so in the records; differs where the cells are those of another protocol.
        over: What the reported mean and deviation are over, in the plural: "folds".
        caption: Lines below the title of a table: how to read its values.
        columns: Header of a table.
        takes_splits: Whether splits may come from a file.
        preprocesses: Whether :meth:`parts` puts graphs in canonical order and standardises real-valued features.
        runs_alone: Whether cells run one after the other, each on one thread.
        shows_fold_deviation: Whether a table also shows the deviation inside the groups that are averaged.
        depends_on_epochs: Whether training for fewer epochs than the paper can change what is measured.
    """

    name: ClassVar[str]
    over: ClassVar[str]
    caption: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[str, ...]]
    takes_splits: ClassVar[bool] = False
    preprocesses: ClassVar[bool] = False
    runs_alone: ClassVar[bool] = False
    shows_fold_deviation: ClassVar[bool] = False
    depends_on_epochs: ClassVar[bool] = True

    @property
    def cell_name(self) -> str:
        return self.name

    @abstractmethod
    def first_cells(self, series: Series) -> list[Cell]:
        """The cells that depend on no others."""

    def ready_cells(self, series: Series, records: Records) -> list[Cell]:
        """All cells that are known by now; some may depend on the records of others."""
        return self.first_cells(series)

    def total(self, series: Series) -> int:
        """Number of cells, including those that are not known yet."""
        return len(self.first_cells(series))

    @abstractmethod
    def check_inputs(self, cell: Cell, context: RunContext) -> None:
        """Raise the error that :meth:`parts` would, before any cell runs."""

    @abstractmethod
    def parts(self, cell: Cell, context: RunContext) -> Parts:
        """The graphs of a cell, divided."""

    @abstractmethod
    def measure(self, cell: Cell, classifier: Any, parts: Parts) -> Measurement:
        """What the cell records about its fitted classifier."""

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Groups of records: the result is the mean over groups of the mean of each. By default one cell is a group.

        A group is left out until all of its cells are done.
        """
        found = [records.get(cell) for cell in self.first_cells(series)]
        return [[record] for record in found if record is not None and is_done(record)]

    def unit(self, cell: dict[str, Any]) -> tuple[int, ...]:
        """What a cell of a group is one of ``over``: models are compared on equal units."""
        return cell["split_seed"], cell["fold"]

    @abstractmethod
    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        """The row of a table, one text for each of ``columns``."""

    def _cell(self, series: Series, configuration: dict[str, Any], **fields: Any) -> Cell:
        return Cell(
            dataset=series.dataset,
            model=str(series.row.path),
            configuration=configuration,
            protocol=self.cell_name,
            grouped=series.grouped,
            splits=series.splits,
            collect=series.row.collect,
            **fields,
        )

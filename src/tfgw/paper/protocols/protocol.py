"""Interface of protocols."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from tfgw.paper.cells import Cell
from tfgw.paper.experiment import Unit
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary
from tfgw.train import Parts


class Measurement(NamedTuple):
    """Record of a trained model: its result, and times, which depend on the machine."""

    result: dict[str, Any]
    times: dict[str, float]


class Protocol(ABC):
    """Defines how the results of a table are computed. Protocols have no state.

    ========================================  =====================================================
    cells of a series                         ``first_cells``, ``ready_cells``, ``total``
    training and measurement of a cell        ``check_inputs``, ``parts``, then fit, then ``measure``
    summary of the records                    ``complete_groups``, ``unit``, ``over``, ``repeats_the_paper``
    table                                     ``columns``, ``row``, ``caption``, ``remarks``
    ========================================  =====================================================

    Methods with a series as argument are only called for series that have cells.

    Attributes:
        name: Name on the command line and in the files of the experiments.
        cell_name: Name in the cells and records; differs from ``name`` if the cells are those of another protocol.
        over: Plural noun for the units of the reported mean and deviation, such as "folds".
        caption: Lines below the title of a table that explain its results.
        training: Sentences that explain rows of this protocol in tables of another one.
        columns: Header of a table.
        takes_splits: Whether splits may come from a file.
        preprocesses: Whether :meth:`parts` puts graphs into canonical order and standardises real-valued features.
        runs_alone: Whether cells run one after the other, each on one thread.
        repeats_the_paper: Whether every group of records is a repetition of the paper's measurement. Then a table also
            shows the deviation within groups, and the share of groups that reach the paper's accuracy.
        shares_graphs: Whether units share training graphs, so that their results are dependent.
        depends_on_epochs: Whether training for fewer epochs than the paper can change the results.
    """

    name: ClassVar[str]
    over: ClassVar[str]
    caption: ClassVar[tuple[str, ...]]
    training: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]]
    takes_splits: ClassVar[bool] = False
    preprocesses: ClassVar[bool] = False
    runs_alone: ClassVar[bool] = False
    repeats_the_paper: ClassVar[bool] = False
    shares_graphs: ClassVar[bool] = True
    depends_on_epochs: ClassVar[bool] = True

    @property
    def cell_name(self) -> str:
        return self.name

    @abstractmethod
    def first_cells(self, series: Series) -> list[Cell]:
        """Return the cells that do not depend on others."""

    def ready_cells(self, series: Series, records: Records) -> list[Cell]:
        """Return all known cells; some may depend on the records of others."""
        return self.first_cells(series)

    def total(self, series: Series) -> int:
        """Return the number of cells, including those that are not known yet."""
        return len(self.first_cells(series))

    @abstractmethod
    def check_inputs(self, cell: Cell, context: RunContext) -> None:
        """Raise the errors of :meth:`parts` before any cell runs."""

    @abstractmethod
    def parts(self, cell: Cell, context: RunContext) -> Parts:
        """Return the graphs of a cell, split."""

    @abstractmethod
    def measure(self, cell: Cell, classifier: Any, parts: Parts) -> Measurement:
        """Measure the fitted classifier of a cell."""

    def complete_groups(self, series: Series, records: Records) -> list[list[Record]]:
        """Return groups of records; the result is the mean over groups of their means (default: one cell per group).

        Groups with unfinished cells are left out.
        """
        found = [records.get(cell) for cell in self.first_cells(series)]
        return [[record] for record in found if record is not None and is_done(record)]

    def unit(self, cell: dict[str, Any]) -> tuple[int, ...]:
        """Return the unit (one of ``over``) of a cell; models are compared on equal units."""
        return cell["split_seed"], cell["fold"]

    def remarks(self, series: Sequence[Series]) -> list[str]:
        """Return more lines of the caption, which depend on the series of the table."""
        return []

    @abstractmethod
    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        """Return the row of a table, one string for each of ``columns``."""

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

"""The training graphs of a kernel machine in a report: names, classes and drawings."""

from functools import cached_property

import numpy as np

from tfgw.nn import KernelModel
from tfgw.plot.drawing_data import DrawnGraph, drawn_graph
from tfgw.report.kernel_view import KernelView
from tfgw.report.report_data import Drawings, ReportData


class TrainingGraphs:
    """Training graphs by their index in the machine. Without the training part, names and classes are unknown.

    Args:
        data: The graphs of the report.
        drawings: Their drawings.
    """

    def __init__(self, data: ReportData, drawings: Drawings) -> None:
        assert data.kernel is not None
        assert isinstance(data.trained.model, KernelModel)
        self.view: KernelView = data.kernel
        self.model = data.trained.model
        self.data = data
        self._drawings = drawings

    def name(self, number: int) -> str:
        """Return the name of a training graph."""
        first = self.first
        return f"training {number}" if first is None else self.data.names[first + number]

    def group(self, number: int) -> str | None:
        """Return the class, or group of values, of a training graph."""
        first = self.first
        return None if first is None or self.data.y is None else self.data.groups[first + number]

    def title(self, number: int) -> str:
        """Return name and class."""
        group = self.group(number)
        return self.name(number) if group is None else f"{self.name(number)} ({group})"

    def left_out(self, number: int) -> str | None:
        """Describe the leave-one-out prediction."""
        first = self.first
        return None if first is None else self.data.values(first + number)

    def drawing(self, number: int) -> DrawnGraph:
        """Return the drawing of a training graph."""
        if self.first is not None:
            return self._drawings[self.first + number]
        return drawn_graph(self.model.training_graph(number), self._drawings.looks)

    @cached_property
    def first(self) -> int | None:
        """Index of the first training graph among the graphs of the report."""
        if self.view.training_part is None:
            return None
        return int(np.flatnonzero(self.data.part == self.view.training_part)[0])

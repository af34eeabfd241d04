"""``sweep``: every configuration on every fold of ``fair``, for figures that compare configurations."""

from tfgw.paper.cells import Cell
from tfgw.paper.protocols.fair import Fair, FairFolds
from tfgw.paper.series import Series


class Sweep(FairFolds):
    """The selection runs of ``fair``, with the same cells but without selection."""

    name = "sweep"
    cell_name = Fair.name
    over = "runs"
    caption = ("Ours: mean and standard deviation over all configurations and test folds; nothing is selected.",)

    def first_cells(self, series: Series) -> list[Cell]:
        return [cell for fold in range(series.sizes["folds"]) for cell in self.configuration_cells(series, fold)]

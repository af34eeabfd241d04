"""``synthetic``: generated datasets, each with its own training and test graphs."""

from tfgw.datasets.synthetic import GENERATORS
from tfgw.paper.cells import Cell
from tfgw.paper.protocols.accuracy import AccuracyProtocol
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Series
from tfgw.train import Parts


class Synthetic(AccuracyProtocol):
    """Every configuration on every generated dataset, without validation graphs; the last epoch is kept."""

    name = "synthetic"
    over = "seeds"
    shares_graphs = False
    caption = ("Ours: mean and standard deviation over generated datasets, with the weights of the last epoch.",)

    def first_cells(self, series: Series) -> list[Cell]:
        seeds = range(series.sizes["seeds"])
        return [
            self._cell(series, configuration, split_seed=seed)
            for configuration in series.configurations
            for seed in seeds
        ]

    def check_inputs(self, cell: Cell, context: RunContext) -> None:
        if cell.dataset not in GENERATORS:
            raise ValueError(f"dataset {cell.dataset!r}: cannot be generated; choose one of {', '.join(GENERATORS)}")

    def parts(self, cell: Cell, context: RunContext) -> Parts:
        """Return the generated graphs."""
        split = GENERATORS[cell.dataset](seed=cell.split_seed)
        return Parts(split.train, None, split.test)

"""``tfgw predict``."""

import argparse
from typing import TYPE_CHECKING

from tfgw.cli.gpu_warm_up import warm_up_gpu
from tfgw.cli.output import CommandResult, table

if TYPE_CHECKING:
    from tfgw.train import TrainedModel


def run(args: argparse.Namespace) -> CommandResult:
    """Predict the class or the values of each graph."""
    warm_up_gpu(args)
    from tfgw.cli.streaming import process_graphs  # takes seconds to load, in which the GPU gets ready

    found = process_graphs(args, "predict", "prediction_columns", _types)
    if args.output is not None:
        data = found.about | {"num_graphs": found.num_graphs, "output": str(args.output)}
        return CommandResult(data, f"wrote {found.num_graphs} predictions to {args.output}")
    header, rows = list(found.columns), [list(row) for row in zip(*found.columns.values(), strict=True)]
    data = found.about | {"predictions": [dict(zip(header, row, strict=True)) for row in rows]}
    return CommandResult(data, table([header, *rows]))


def _types(trained: "TrainedModel") -> dict[str, type]:
    """Return the types of columns that may be empty."""
    return {"label": type(trained.classes[0])} if trained.classes else {"target": float}

"""``tfgw embed``."""

import argparse

from tfgw.cli.gpu_warm_up import warm_up_gpu
from tfgw.cli.output import CommandResult, table


def run(args: argparse.Namespace) -> CommandResult:
    """Compute the distances of each graph to the templates."""
    warm_up_gpu(args)
    from tfgw.cli.streaming import process_graphs  # takes seconds to load, in which the GPU gets ready

    found = process_graphs(args, "embed", "distance_columns", lambda trained: {})
    if args.output is not None:
        data = found.about | {"num_graphs": found.num_graphs, "output": str(args.output)}
        return CommandResult(data, f"wrote distances of {found.num_graphs} graphs to {args.output}")
    columns = found.columns
    distances = [values for name, values in columns.items() if name.startswith("template_")]
    data = found.about | {
        "graphs": columns["graph"],
        **({"ids": columns["id"]} if "id" in columns else {}),
        "distances": [list(row) for row in zip(*distances, strict=True)],
    }
    return CommandResult(data, table([list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]))

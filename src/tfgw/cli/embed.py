"""``tfgw embed``."""

import argparse

from tfgw.cli.model_inputs import find_graphs, find_model
from tfgw.cli.output import Answer, table, write_csv


def run(args: argparse.Namespace) -> Answer:
    """Distances of each graph to the templates."""
    trained = find_model(args)
    distances = trained.embed(find_graphs(args, trained)).tolist()
    header = ["graph", *(f"template_{number}" for number in range(len(distances[0])))]
    rows = [[number, *row] for number, row in enumerate(distances)]
    if args.output is None:
        return Answer(distances, table([header, *rows]))
    write_csv(args.output, header, rows)
    return Answer(distances, f"distances of {len(rows)} graphs to {len(header) - 1} templates in {args.output}")

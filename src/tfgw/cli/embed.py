"""``tfgw embed``."""

import argparse

from tfgw.cli.model_inputs import find_graphs, find_model, unseen_labels
from tfgw.cli.output import Answer, table, write_csv


def run(args: argparse.Namespace) -> Answer:
    """Distances of each graph to the templates."""
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    distances = trained.embed(graphs).tolist()
    header = ["graph", *(f"template_{number}" for number in range(len(distances[0])))]
    rows = [[position, *row] for position, row in zip(graphs.positions, distances, strict=True)]
    data = {
        "dataset": graphs.name,
        "unseen_labels": unseen_labels(graphs),
        "graphs": graphs.positions,
        "distances": distances,
    }
    if args.output is None:
        return Answer(data, table([header, *rows]))
    write_csv(args.output, header, rows)
    return Answer(data, f"distances of {len(rows)} graphs to {len(header) - 1} templates in {args.output}")

"""``tfgw embed``."""

import argparse

from tfgw.cli.model_inputs import find_graphs, find_model, places, unseen_labels
from tfgw.cli.output import Answer, check_output, open_rows, table, type_of


def run(args: argparse.Namespace) -> Answer:
    """Distances of each graph to the templates."""
    check_output(args.output)
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    distances = trained.embed(graphs).tolist()
    found = places(graphs)
    columns = found | {f"template_{number}": list(values) for number, values in enumerate(zip(*distances, strict=True))}
    header = list(columns)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    data = {
        "dataset": graphs.name,
        "unseen_labels": unseen_labels(graphs),
        "graphs": found["graph"],
        **({"ids": found["id"]} if "id" in found else {}),
        "distances": distances,
    }
    if args.output is None:
        return Answer(data, table([header, *rows]))
    with open_rows(args.output, {name: type_of(values) for name, values in columns.items()}) as file:
        file.write(rows)
    return Answer(data, f"distances of {len(rows)} graphs to {len(header) - len(found)} templates in {args.output}")

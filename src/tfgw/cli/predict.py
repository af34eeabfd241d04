"""``tfgw predict``."""

import argparse
from typing import Any

from tfgw.cli.answer import Answer, table
from tfgw.cli.trained import find_graphs, find_model, write_csv


def run(args: argparse.Namespace) -> Answer:
    """Predict the class or the values of each graph."""
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    predicted = trained.predict(graphs)
    data = [{"graph": number, "prediction": value} for number, value in enumerate(predicted)]
    header = ["graph", "prediction"]
    rows: list[list[Any]] = [[number, value] for number, value in enumerate(predicted)]
    if trained.task == "classification":
        shares = trained.probabilities(graphs).amax(1).tolist()
        header.append("probability")
        for entry, row, share in zip(data, rows, shares, strict=True):
            entry["probability"] = share
            row.append(share)
    if args.output is None:
        return Answer(data, table([header, *rows]))
    write_csv(args.output, header, rows)
    return Answer(data, f"{len(rows)} predictions in {args.output}")

"""``tfgw predict``."""

import argparse
from typing import Any

from tfgw.cli.model_inputs import find_graphs, find_model
from tfgw.cli.output import Answer, table, write_csv
from tfgw.datasets import GraphDataset
from tfgw.train import TrainedModel


def run(args: argparse.Namespace) -> Answer:
    """Predict the class or the values of each graph."""
    trained = find_model(args)
    columns = _columns(trained, find_graphs(args, trained))
    header = ["graph", *columns]
    rows = [[number, *row] for number, row in enumerate(zip(*columns.values(), strict=True))]
    data = [dict(zip(header, row, strict=True)) for row in rows]
    if args.output is None:
        return Answer(data, table([header, *rows]))
    write_csv(args.output, header, rows)
    return Answer(data, f"{len(rows)} predictions in {args.output}")


def _columns(trained: TrainedModel, graphs: GraphDataset) -> dict[str, list[Any]]:
    if trained.task != "classification":
        return {"prediction": trained.predict(graphs)}
    best = trained.probabilities(graphs).max(1)
    return {
        "prediction": [trained.classes[number] for number in best.indices.tolist()],
        "probability": best.values.tolist(),
    }

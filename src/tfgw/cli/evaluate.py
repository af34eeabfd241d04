"""``tfgw evaluate``."""

import argparse

from tfgw.cli.model_inputs import find_graphs, find_model
from tfgw.cli.output import Answer, table
from tfgw.train import SCORE_NAMES


def run(args: argparse.Namespace) -> Answer:
    """Measure a model on labelled graphs."""
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    measured = trained.evaluate(graphs)
    data = {
        "dataset": graphs.name,
        "graphs": len(graphs),
        SCORE_NAMES[trained.task]: measured.score,
        "loss": measured.loss,
    }
    return Answer(data, table(list(data.items())))

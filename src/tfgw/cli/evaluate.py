"""``tfgw evaluate``."""

import argparse
from typing import Any

from tfgw.cli.model_inputs import find_graphs, find_model, unseen_labels
from tfgw.cli.output import CommandResult, table


def run(args: argparse.Namespace) -> CommandResult:
    """Evaluate a model on labelled graphs (default: the test graphs of its run)."""
    trained = find_model(args)
    graphs = find_graphs(args, trained, whole=args.all)
    data = {
        "dataset": graphs.name,
        **trained.measure(graphs),
        "classes": list(trained.classes),
        "unseen_labels": unseen_labels(graphs),
    }
    return CommandResult(data, _text(data))


def _text(data: dict[str, Any]) -> str:
    apart = ("confusion_matrix", "classes", "unseen_labels")
    text = table([[name.replace("_", " "), value] for name, value in data.items() if name not in apart])
    if "confusion_matrix" not in data:
        return text
    names = [str(name) for name in data["classes"]]
    rows = [[name, *counts] for name, counts in zip(names, data["confusion_matrix"], strict=True)]
    return f"{text}\n\nconfusion matrix (rows: true class, columns: predicted class)\n\n{table([['', *names], *rows])}"

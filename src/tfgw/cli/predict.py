"""``tfgw predict``."""

import argparse
from math import isnan
from typing import Any

from torch import Tensor

from tfgw.cli.model_inputs import find_graphs, find_model, places, unseen_labels
from tfgw.cli.output import Answer, check_output, open_rows, table, type_of
from tfgw.datasets import GraphDataset
from tfgw.train import TrainedModel, decide, probabilities


def run(args: argparse.Namespace) -> Answer:
    """Predict the class or the values of each graph."""
    check_output(args.output)
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    columns = places(graphs) | _known(trained, graphs) | _predicted(trained, graphs)
    header = list(columns)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    data = {
        "dataset": graphs.name,
        "unseen_labels": unseen_labels(graphs),
        "predictions": [dict(zip(header, row, strict=True)) for row in rows],
    }
    if args.output is None:
        return Answer(data, table([header, *rows]))
    with open_rows(args.output, {name: type_of(values) for name, values in columns.items()}) as file:
        file.write(rows)
    return Answer(data, f"{len(rows)} predictions in {args.output}")


def _known(trained: TrainedModel, graphs: GraphDataset) -> dict[str, list[Any]]:
    """What the source says of each graph: its label or its values, ``None`` where it says nothing."""
    name, y = "label" if trained.task == "classification" else "target", graphs.y
    if y is None:
        return {name: [None] * len(graphs)}
    if graphs.classes:
        return {name: [graphs.classes[number] if number >= 0 else None for number in y.tolist()]}
    known = _columns(name, y)
    return {name: [None if isnan(value) else value for value in values] for name, values in known.items()}


def _predicted(trained: TrainedModel, graphs: GraphDataset) -> dict[str, list[Any]]:
    outputs = trained.outputs(graphs)
    decided = decide(trained.task, outputs)
    if trained.task == "regression":
        return _columns("prediction", decided)
    chances = probabilities(trained.task, outputs)
    if trained.task == "multilabel":
        return _columns("prediction", decided) | _columns("probability", chances)
    return {
        "prediction": [trained.classes[number] for number in decided.tolist()],
        "probability": chances.amax(1).tolist(),
        **{f"probability_{name}": column for name, column in zip(trained.classes, chances.T.tolist(), strict=True)},
    }


def _columns(name: str, values: Tensor) -> dict[str, list[Any]]:
    """One column, or one for each of several values of a graph."""
    columns = values.reshape(len(values), -1).T.tolist()
    return {name: columns[0]} if len(columns) == 1 else {f"{name}_{i}": column for i, column in enumerate(columns)}

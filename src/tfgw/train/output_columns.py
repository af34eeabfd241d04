"""Predictions and embeddings as columns with one row per graph, as they are written to files."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tfgw.train.tasks import Task, decide, probabilities

Columns = dict[str, list[Any]]


def identifying_columns(positions: Sequence[int], identifiers: list[Any] | None) -> Columns:
    """Return the columns that identify a graph in its source: its position, and its identifier if it has one."""
    return {"graph": list(positions)} | ({} if identifiers is None else {"id": identifiers})


def target_columns(task: Task, targets: list[Any] | None, count: int) -> Columns:
    """Return the true label or values of each graph, or ``None`` if unknown."""
    name = "label" if task == "classification" else "target"
    if targets is None:
        return {name: [None] * count}
    if task != "classification":
        targets = [_floats(row) for row in targets]
    if isinstance(targets[0], list) and len(targets[0]) == 1:
        targets = [row[0] for row in targets]
    if isinstance(targets[0], list):
        return {f"{name}_{i}": list(column) for i, column in enumerate(zip(*targets, strict=True))}
    return {name: targets}


def prediction_columns(task: Task, classes: Sequence[Any], outputs: Tensor) -> Columns:
    """Return the predictions, and probabilities for classification and multilabel tasks."""
    decided = decide(task, outputs)
    if task == "regression":
        return _columns("prediction", decided)
    chances = probabilities(task, outputs)
    if task == "multilabel":
        return _columns("prediction", decided) | _columns("probability", chances)
    return {
        "prediction": [classes[number] for number in decided.tolist()],
        "probability": chances.amax(1).tolist(),
        **{f"probability_{name}": column for name, column in zip(classes, chances.T.tolist(), strict=True)},
    }


def distance_columns(distances: Tensor) -> Columns:
    """Return one column of distances per template."""
    return {f"template_{number}": column for number, column in enumerate(distances.T.tolist())}


def _floats(row: Any) -> Any:
    if row is None:
        return None
    return list(map(float, row)) if isinstance(row, list) else float(row)


def _columns(name: str, values: Tensor) -> Columns:
    """Return one column, or one per value if graphs have several values."""
    columns = values.reshape(len(values), -1).T.tolist()
    return {name: columns[0]} if len(columns) == 1 else {f"{name}_{i}": column for i, column in enumerate(columns)}

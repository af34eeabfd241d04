"""Base class of protocols that measure accuracies."""

from typing import Any, ClassVar

from tfgw.paper.cell_graphs import class_labels
from tfgw.paper.cells import Cell
from tfgw.paper.embedding_record import describe_embedding
from tfgw.paper.experiment import Unit
from tfgw.paper.protocols.protocol import Measurement, Protocol
from tfgw.paper.series import Series
from tfgw.paper.summary import Summary
from tfgw.paper.time_estimates import format_duration
from tfgw.train import Parts

ATTRIBUTES = ("num_parameters_", "alpha_")
"""Attributes of a fitted classifier that are recorded if they exist."""


OLDER = "†"
"""Mark of results with cells that are older than a change of the code."""


class AccuracyProtocol(Protocol):
    """Measures the accuracy on training, validation and test graphs."""

    columns: ClassVar[tuple[str, ...]] = (
        "dataset",
        "model",
        "paper",
        "ours, test",
        "± over",
        "validation",
        "train",
        "cells",
        "epochs",
        "time",
    )

    def measure(self, cell: Cell, classifier: Any, parts: Parts) -> Measurement:
        assert parts.test is not None
        result: dict[str, Any] = {
            "train_accuracy": float(classifier.score(list(parts.train), class_labels(parts.train))),
            "validation_accuracy": None if parts.validation is None else float(classifier.validation_score_),
            "test_accuracy": float(classifier.score(list(parts.test), class_labels(parts.test))),
            "train_graphs": len(parts.train),
            "validation_graphs": 0 if parts.validation is None else len(parts.validation),
            "test_graphs": len(parts.test),
        }
        result |= {
            name.removesuffix("_"): getattr(classifier, name) for name in ATTRIBUTES if hasattr(classifier, name)
        }
        if cell.collect == "embedding":
            result["embedding"] = describe_embedding(classifier, parts._asdict())
        return Measurement(result, times={})

    def row(self, series: Series, summary: Summary, unit: Unit) -> list[str]:
        paper = series.row.paper.get(series.dataset)
        ours = series.not_run or (unit.show(summary.test) if summary.done + summary.failed else _not_run_yet(summary))
        if summary.deviation is not None:
            ours += f" ± {unit.show(summary.deviation)}"
        if summary.fold_deviation is not None:
            ours += f" ({unit.show(summary.fold_deviation)})"
        if summary.changes:
            ours += f" {OLDER}"
        return [
            series.dataset,
            series.row.title,
            "-" if paper is None else f"{paper[0]:.{unit.digits}f} ± {paper[1]:.{unit.digits}f}",
            ours,
            f"{summary.units} {summary.over if summary.units > 1 else summary.over[:-1]}" if summary.units else "-",
            unit.show(summary.validation),
            unit.show(summary.train),
            f"{summary.done}/{summary.total}" + (f" ({summary.failed} failed)" if summary.failed else ""),
            "-" if summary.epochs is None or summary.total == 0 else str(summary.epochs),
            format_duration(summary.seconds) + ("" if summary.gpu == "no" else "*") if summary.done else "-",
        ]


def _not_run_yet(summary: Summary) -> str:
    if summary.total == 0:
        return "-"
    if summary.expected_seconds is None:
        return "not run yet"
    return f"not run yet (about {format_duration(summary.expected_seconds)})"

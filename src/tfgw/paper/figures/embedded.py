"""Recorded embeddings of trained models, for several figures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfgw.paper.experiment import Experiment
from tfgw.paper.figures.drawing import require
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.series import Series, finished


class Embedded(NamedTuple):
    """Distances ``(num_graphs, K)`` and labels of all graphs, whether they are training graphs, and the templates."""

    title: str
    distances: np.ndarray
    labels: np.ndarray
    is_test: np.ndarray
    template_distances: np.ndarray
    template_classes: np.ndarray
    result: dict[str, Any]


def embedded_models(experiment: Experiment, series: Sequence[Series], records: Records) -> list[Embedded]:
    """One model per row."""
    models = []
    for one in series:
        done = [record for record in finished(one, records) if is_done(record)]
        require(done, experiment, one)
        models.append(_embedded(one.row.title, done[0]))
    return models


def _embedded(title: str, record: Record) -> Embedded:
    kept = record["result"]["embedding"]
    parts = list(kept["distances"])
    return Embedded(
        title=title,
        distances=np.concatenate([np.array(kept["distances"][part]) for part in parts]),
        labels=np.concatenate([np.array(kept["labels"][part]) for part in parts]),
        is_test=np.concatenate([np.full(len(kept["labels"][part]), part == "test") for part in parts]),
        template_distances=np.array(kept["template_distances"]),
        template_classes=np.array(kept["template_classes"]),
        result=record["result"],
    )

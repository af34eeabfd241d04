"""Measurements of a training run, and the rule by which it keeps a model."""

from typing import Any, NamedTuple

from tfgw.datasets.typed_json import from_json


class EpochRecord(NamedTuple):
    """Measurements of one epoch. Loss and score of the training graphs are taken during training, before each step.

    ``alpha`` (mean over the templates) and ``live_nodes`` (mean number of template nodes with weight) are ``None`` for
    a model without templates, those of the validation ``None`` for an epoch without one.
    """

    epoch: int
    loss: float
    score: float
    validation_loss: float | None = None
    validation_score: float | None = None
    alpha: float | None = None
    live_nodes: float | None = None


class Kept(NamedTuple):
    """The epoch whose weights are kept."""

    epoch: int
    score: float
    validation_score: float


def is_worth_keeping(record: EpochRecord, kept: Kept | None) -> bool:
    """The paper's rule: neither the validation nor the training score is below that of the kept model."""
    if record.validation_score is None:
        return False
    return kept is None or (record.validation_score >= kept.validation_score and record.score >= kept.score)


def describe_records(records: list[EpochRecord], kept: Kept | None) -> dict[str, Any]:
    """Records as JSON values."""
    return {"records": [record._asdict() for record in records], "kept": kept._asdict() if kept else None}


def read_records(description: dict[str, Any]) -> tuple[list[EpochRecord], Kept | None]:
    """The inverse of :func:`describe_records`."""
    kept = description["kept"]
    records = [from_json(EpochRecord, record, may_be_nan=True) for record in description["records"]]
    return records, from_json(Kept, kept, may_be_nan=True) if kept else None

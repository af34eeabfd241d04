"""Metrics of a training run, and the rule that selects the best model."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from tfgw.datasets.typed_json import from_json

Selection = Literal["running", "evaluated"]


class EpochRecord(NamedTuple):
    """Metrics of one epoch. Loss and score of the training graphs are computed during training, before each step.

    ``alpha`` (mean over the templates) and ``live_nodes`` (mean number of template nodes with positive weight) are
    ``None`` for a model without templates. The validation metrics are ``None`` for an epoch without validation.
    """

    epoch: int
    loss: float
    score: float
    validation_loss: float | None = None
    validation_score: float | None = None
    alpha: float | None = None
    live_nodes: float | None = None


class Kept(NamedTuple):
    """The epoch whose weights are kept, with the scores that selected it."""

    epoch: int
    score: float
    validation_score: float


def is_worth_keeping(record: EpochRecord, kept: Kept | None) -> bool:
    """Apply the paper's rule: neither the validation nor the training score is below that of the kept model."""
    if record.validation_score is None:
        return False
    return kept is None or (record.validation_score >= kept.validation_score and record.score >= kept.score)


def reaches_best(record: EpochRecord, earlier: Sequence[EpochRecord]) -> bool:
    """Whether the validation score is at least that of every earlier epoch, kept or not."""
    best = max((past.validation_score for past in earlier if past.validation_score is not None), default=None)
    return record.validation_score is not None and (best is None or record.validation_score >= best)


def describe_records(records: list[EpochRecord], kept: Kept | None) -> dict[str, Any]:
    """Return records as JSON data."""
    return {"records": [record._asdict() for record in records], "kept": kept._asdict() if kept else None}


def read_records(description: dict[str, Any]) -> tuple[list[EpochRecord], Kept | None]:
    """Return the records and the kept epoch from data of :func:`describe_records`."""
    kept = description["kept"]
    records = [from_json(EpochRecord, record, may_be_nan=True) for record in description["records"]]
    return records, from_json(Kept, kept, may_be_nan=True) if kept else None

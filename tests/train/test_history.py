"""Records of epochs, as they are kept in checkpoints."""

import json
import math

from tfgw.train import EpochRecord, Kept
from tfgw.train.history import describe_records, reaches_best, read_records


def test_records_are_read_as_they_were_written() -> None:
    records = [
        EpochRecord(epoch=1, loss=0.5, score=0.25, validation_loss=0.75, validation_score=1.0, alpha=0.5, live_nodes=3),
        EpochRecord(epoch=2, loss=0.25, score=0.5),
    ]
    kept = Kept(epoch=1, score=0.25, validation_score=1.0)
    assert read_records(json.loads(json.dumps(describe_records(records, kept)))) == (records, kept)
    assert read_records(describe_records(records[1:], None)) == (records[1:], None)


def test_the_best_validation_score_is_of_any_epoch_before() -> None:
    earlier = [
        EpochRecord(epoch=1, loss=0.5, score=0.25, validation_score=0.75),
        EpochRecord(epoch=2, loss=0.5, score=0.25, validation_score=0.5),
        EpochRecord(epoch=3, loss=0.5, score=0.25),
    ]
    found = [reaches_best(EpochRecord(4, 0.5, 0.25, None, score), earlier) for score in (0.5, 0.75, 1.0, None)]
    assert found == [False, True, True, False]
    assert reaches_best(earlier[1], [])


def test_a_validation_that_has_no_value_is_kept_as_such() -> None:
    records = [EpochRecord(epoch=1, loss=0.5, score=0.25, validation_loss=math.nan, validation_score=math.nan)]
    kept = Kept(epoch=1, score=0.25, validation_score=math.nan)
    found, best = read_records(json.loads(json.dumps(describe_records(records, kept))))
    assert math.isnan(found[0].validation_loss)
    assert math.isnan(best.validation_score)

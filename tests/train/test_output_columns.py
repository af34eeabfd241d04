"""Results as columns: the prediction, its probability, and what the source says."""

import math

import pytest
import torch

from tfgw.train.output_columns import distance_columns, identifying_columns, prediction_columns, target_columns

LOGIT = math.log(3)  # a probability of 3/4


def test_classes() -> None:
    outputs = torch.tensor([[0.0, LOGIT], [LOGIT, 0.0], [LOGIT, 0.0]], dtype=torch.float64)
    found = prediction_columns("classification", ("star", 7), outputs)
    assert found["prediction"] == [7, "star", "star"]
    assert found["probability"] == pytest.approx([0.75, 0.75, 0.75])
    assert found["probability_star"] == pytest.approx([0.25, 0.75, 0.75])
    assert found["probability_7"] == pytest.approx([0.75, 0.25, 0.25])
    assert list(found) == ["prediction", "probability", "probability_star", "probability_7"]


def test_labels_of_which_several_may_hold() -> None:
    outputs = torch.tensor([[LOGIT, -LOGIT, LOGIT], [-LOGIT, -LOGIT, LOGIT]], dtype=torch.float64)
    found = prediction_columns("multilabel", (), outputs)
    assert [found[f"prediction_{i}"] for i in range(3)] == [[1, 0], [0, 0], [1, 1]]
    assert found["probability_0"] == pytest.approx([0.75, 0.25])
    assert found["probability_1"] == pytest.approx([0.25, 0.25])
    assert list(found) == [f"{name}_{i}" for name in ("prediction", "probability") for i in range(3)]
    one = prediction_columns("multilabel", (), outputs[:, :1])
    assert one == {"prediction": [1, 0], "probability": pytest.approx([0.75, 0.25])}


def test_values() -> None:
    outputs = torch.tensor([[1.5, -2.0], [0.25, 3.0]])
    assert prediction_columns("regression", (), outputs) == {"prediction_0": [1.5, 0.25], "prediction_1": [-2.0, 3.0]}
    assert prediction_columns("regression", (), outputs[:, :1]) == {"prediction": [1.5, 0.25]}


def test_what_the_source_says() -> None:
    assert target_columns("classification", ["a", None], 2) == {"label": ["a", None]}
    assert target_columns("regression", None, 3) == {"target": [None, None, None]}
    assert target_columns("regression", [2, None], 2) == {"target": [2.0, None]}
    assert target_columns("regression", [[1], [2]], 2) == {"target": [1.0, 2.0]}
    assert target_columns("multilabel", [[1, 0], [0, 1], [1, 1]], 3) == {"target_0": [1, 0, 1], "target_1": [0, 1, 1]}
    assert identifying_columns(range(2, 4), None) == {"graph": [2, 3]}
    assert identifying_columns([5], ["x"]) == {"graph": [5], "id": ["x"]}
    assert distance_columns(torch.tensor([[0.5, 2.0, 1.0]])) == {
        "template_0": [0.5],
        "template_1": [2.0],
        "template_2": [1.0],
    }

import math

import pytest
import torch

from tfgw.train import decide, probabilities
from tfgw.train.tasks import sums


def test_classification_counts_right_answers() -> None:
    outputs = torch.tensor([[2.0, 0.0, -1.0], [0.0, 3.0, 0.0]])
    measured = sums("classification", outputs, torch.tensor([0, 2]))
    assert measured.score == 1
    expected = -torch.log_softmax(outputs, 1)[torch.arange(2), torch.tensor([0, 2])].sum()
    assert torch.allclose(measured.loss, expected)
    assert decide("classification", outputs).tolist() == [0, 1]
    assert torch.allclose(probabilities("classification", outputs).sum(1), torch.ones(2))


def test_multilabel_averages_over_the_labels_of_a_graph() -> None:
    outputs = torch.tensor([[4.0, -4.0, 4.0, 4.0]])
    measured = sums("multilabel", outputs, torch.tensor([[1.0, 0.0, 1.0, 0.0]]))
    assert measured.score == 0.75
    assert decide("multilabel", outputs).tolist() == [[1, 0, 1, 1]]


def test_a_label_holds_if_that_is_more_likely_than_not() -> None:
    outputs, y = torch.tensor([[0.125, -0.125]]), torch.tensor([[1.0, 0.0]])
    assert decide("multilabel", outputs).tolist() == [[1, 0]]
    assert (sums("multilabel", outputs, y).score, sums("multilabel", -outputs, y).score) == (1, 0)
    chances = probabilities("multilabel", outputs)
    assert chances.tolist() == [[pytest.approx(1 / (1 + math.exp(-0.125))), pytest.approx(1 / (1 + math.exp(0.125)))]]


def test_smoothed_labels_of_weighted_graphs() -> None:
    """The loss of each graph alone, times its weight."""
    outputs, y = torch.tensor([[2.0, 0.0, -1.0], [0.0, 3.0, 0.5]]), torch.tensor([0, 2])
    alone = [sums("classification", outputs[[i]], y[[i]], label_smoothing=0.3) for i in range(2)]
    found = sums("classification", outputs, y, label_smoothing=0.3, weights=torch.tensor([0.5, 3.0]))
    assert found.loss == pytest.approx(float(0.5 * alone[0].loss + 3.0 * alone[1].loss))
    assert found.score == 1
    chances = outputs.log_softmax(1)
    smooth = -(0.7 * chances[torch.arange(2), y] + 0.3 * chances.mean(1))
    assert [float(one.loss) for one in alone] == pytest.approx(smooth.tolist())


def test_regression_scores_by_minus_the_squared_error() -> None:
    measured = sums("regression", torch.tensor([[1.0], [4.0]]), torch.tensor([0.0, 2.0]))
    assert measured.loss == 5
    assert measured.score == -5
    with pytest.raises(ValueError, match="probabilities"):
        probabilities("regression", torch.zeros(1, 1))


def test_targets_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="y: has 3 values"):
        sums("regression", torch.zeros(2, 1), torch.zeros(2, 3))

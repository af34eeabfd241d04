"""Evaluation leaves a model as it was, and does not depend on how graphs are divided into batches."""

import pytest
import torch

from tests.train.small import cycles_and_stars, small_model
from tfgw.train import evaluate, outputs
from tfgw.train.evaluate import embeddings, evaluation_mode, readouts, store_for


@pytest.mark.parametrize("training", [True, False])
def test_a_model_keeps_its_mode(training: bool) -> None:
    model = small_model(cycles_and_stars(), dropout=0.5).train(training)
    with evaluation_mode(model):
        assert not model.training
        assert not torch.is_grad_enabled()
    assert (model.training, torch.is_grad_enabled()) == (training, True)
    with pytest.raises(KeyError), evaluation_mode(model):
        raise KeyError
    assert (model.training, torch.is_grad_enabled()) == (training, True)


def test_dropout_does_nothing_and_no_gradients_are_kept() -> None:
    data = cycles_and_stars()
    model = small_model(data, dropout=0.5).train()
    first, second = outputs(model, data), outputs(model, data)
    assert torch.equal(first, second)
    assert not first.requires_grad


def test_batches_do_not_matter() -> None:
    data = cycles_and_stars(11)
    model = small_model(data).double()
    for found in (outputs, embeddings, readouts):
        whole = found(model, data)
        assert len(whole) == 11
        torch.testing.assert_close(found(model, data, batch_size=4), whole, rtol=1e-12, atol=1e-15)
    whole, divided = (evaluate(model, data, task="classification", batch_size=size) for size in (256, 3))
    assert divided == pytest.approx(whole, rel=1e-12)


def test_loss_and_score_are_means_over_graphs() -> None:
    data = cycles_and_stars(11)
    model = small_model(data).double()
    found = outputs(model, data)
    expected = -found.log_softmax(1)[torch.arange(11), data.y].mean()
    measured = evaluate(model, data, task="classification")
    assert measured.loss == pytest.approx(float(expected), rel=1e-12)
    assert measured.score == float((found.argmax(1) == data.y).double().mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_graphs_have_the_precision_of_the_model(dtype: torch.dtype) -> None:
    data = cycles_and_stars(5)
    model = small_model(data).to(dtype)
    (batch,) = store_for(model, data).in_order(5)
    assert batch.inputs["x"].dtype == outputs(model, data).dtype == dtype
    assert store_for(model.to("meta"), data).device.type == "meta"

"""Weights of training graphs: what they change, and what they do not."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_sample_weight
from torch.nn import functional

from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.datasets import GraphDataset, ShortestPaths
from tfgw.nn import KernelConfig
from tfgw.train import Parts, Preprocessing, TrainConfig, fit, outputs, train_model
from tfgw.train.graph_weights import checked_weights, given_weights, training_weights, with_graph_weights
from tfgw.train.kernel_pipeline import train_kernel
from tfgw.train.tasks import sums

STILL = TrainConfig(epochs=1, batch_size=24, lr=1e-12, accelerator="cpu")  # one batch
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3.0, size=24)


def loss_of(train: GraphDataset) -> float:
    """The loss of an epoch that changes nothing."""
    model = small_model(train, layers=0)  # without batch normalisation
    return fit(model, train, config=STILL).records[0].loss


def test_the_loss_is_the_weighted_mean() -> None:
    train = cycles_and_stars()
    losses = functional.cross_entropy(outputs(small_model(train, layers=0).double(), train), train.y, reduction="none")
    expected = np.average(losses.numpy(), weights=WEIGHTS)
    for scale in (1.0, 100.0):
        assert loss_of(with_graph_weights(train, scale * WEIGHTS)) == pytest.approx(expected, rel=1e-5)
    assert loss_of(train) == pytest.approx(float(losses.mean()), rel=1e-5)


@pytest.mark.parametrize(("task", "values"), [("regression", 1), ("regression", 2), ("multilabel", 2)])
def test_all_tasks_are_weighted(task: str, values: int) -> None:
    given = torch.tensor([[0.5, -2.0], [1.0, 0.25], [-1.5, 3.0]])[:, :values]
    y, weights = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])[:, :values], torch.tensor([0.0, 1.0, 4.0])
    alone = [sums(task, given[[i]], y[[i]]) for i in range(3)]
    found = sums(task, given, y, weights=weights)
    assert found.loss == pytest.approx(float(alone[1].loss + 4 * alone[2].loss))
    assert found.score == pytest.approx(float(sum(one.score for one in alone)))


def test_validation_and_scores_count_all_graphs_alike() -> None:
    train, validation = cycles_and_stars(), cycles_and_stars(9, seed=1)
    plain, weighted = (
        fit(small_model(train), part, with_graph_weights(validation, WEIGHTS[:9]), config=STILL).records[0]
        for part in (train, with_graph_weights(train, WEIGHTS))
    )
    assert (plain.score, plain.validation_loss) == (weighted.score, pytest.approx(weighted.validation_loss, rel=1e-6))


def test_equal_weights_change_no_bit() -> None:
    train, config = cycles_and_stars(), TrainConfig(epochs=3, batch_size=7, accelerator="cpu")
    models = [small_model(train) for _ in range(3)]
    for model, part in zip(
        models, (train, with_graph_weights(train, np.full(24, 2.5)), with_graph_weights(train, WEIGHTS)), strict=True
    ):
        fit(model, part, config=config)
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])


def test_a_selection_keeps_its_weights_through_preprocessing() -> None:
    train = cycles_and_stars()
    chosen = [5, 2, 11]
    weighted = with_graph_weights(train[chosen], WEIGHTS[chosen])
    prepared = Preprocessing.fit(weighted, structure="shortest_path")(weighted).map(ShortestPaths())
    found = prepared.stacked["graph_weight"].numpy()
    np.testing.assert_allclose(found, WEIGHTS[chosen] / WEIGHTS[chosen].mean())


def test_fixed_distances_are_weighted_too() -> None:
    train = cycles_and_stars()
    weighted = with_graph_weights(train, WEIGHTS)
    preprocessing = Preprocessing.fit(train, standardize=False)

    def still(graphs: GraphDataset, config: TrainConfig) -> torch.nn.Module:
        model = small_model(graphs, layers=0)
        for parameter in model.pool.parameters():
            parameter.requires_grad_(False)
        for name in list(model.pool._parameters):
            value = model.pool._parameters.pop(name)
            model.pool.register_buffer(name, None if value is None else value.detach())
        return model

    found = train_model(Parts(weighted), still, STILL, preprocessing=preprocessing)
    losses = functional.cross_entropy(outputs(found.model, found.parts.train), train.y, reduction="none")
    expected = np.average(losses.double().numpy(), weights=WEIGHTS)
    assert found.result.records[0].loss == pytest.approx(expected, rel=1e-5)


def test_weights_of_classes() -> None:
    codes, classes = np.array([0, 2, 2, 0, 2, 2, 2]), ("a", "b", "c")
    graphs = cycles_and_stars(7).with_tensors({"y": torch.from_numpy(codes)})
    balanced = training_weights(graphs, None, balanced_classes=True)
    np.testing.assert_allclose(balanced, compute_sample_weight("balanced", codes))
    both = training_weights(graphs, np.arange(7), balanced_classes=True)
    np.testing.assert_allclose(both, np.arange(7) * compute_sample_weight("balanced", codes))
    assert training_weights(graphs, None, balanced_classes=False) is None
    assert given_weights(None, "balanced", codes, classes) is None
    assert given_weights(None, {"c": 3}, codes, classes).tolist() == [1, 3, 3, 1, 3, 3, 3]
    assert given_weights(range(7), {"c": 3}, codes, classes).tolist() == [0, 3, 6, 3, 12, 15, 18]
    whole = given_weights(None, {"a": 1, "b": 2, "c": 3}, codes, classes)
    assert (whole.dtype, whole.tolist()) == (np.float64, [1, 3, 3, 1, 3, 3, 3])
    with pytest.raises(ValueError, match="class_weight: no graph has the label 'd'"):
        given_weights(None, {"d": 1}, codes, classes)
    with pytest.raises(ValueError, match="class_weight: must be 'balanced' or a mapping"):
        given_weights(None, "fair", codes, classes)  # type: ignore[arg-type]


def test_only_classes_are_balanced() -> None:
    data = regression_data(1)
    config = TrainConfig(task="regression", epochs=1)
    with pytest.raises(ValueError, match="balanced_classes: the training graphs have no classes"):
        train_model(Parts(data), small_model, config, preprocessing=Preprocessing.fit(data), balanced_classes=True)
    kernels = KernelConfig(in_channels=3, out_channels=1, features="averages")
    with pytest.raises(ValueError, match="balanced_classes: the training graphs have no classes"):
        train_kernel(data, kernels, task="regression", balanced_classes=True)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "graph 1 has -1.0"),
        ([1, 1, np.nan], "graph 2 has nan"),
        ([1, 1], r"each of 3 graphs, got shape \(2,\)"),
        (["a", "b", "c"], "expected numbers"),
        ([0, 0, 0], "at least one non-zero"),
    ],
)
def test_wrong_weights(weights: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_weights(weights, 3)

"""Ensembles on the path from graphs to a trained model, its file, and its answers."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.train.small import cycles_and_stars, regression_data, same_weights
from tfgw.baselines import GIN
from tfgw.estimators import TFGWClassifier, TFGWRegressor
from tfgw.nn import Ensemble, TFGWConfig
from tfgw.train import (
    FileError,
    Parts,
    Preprocessing,
    TrainConfig,
    TrainedModel,
    build_tfgw,
    check_model,
    load_model,
    save_model,
    train_model,
)
from tfgw.train.tasks import sums

CONFIG = TrainConfig(epochs=3, batch_size=9, lr=0.01, accelerator="cpu", seed=5)
ARCHITECTURE = TFGWConfig(in_channels=3, out_channels=2, num_templates=2, template_nodes=5, num_layers=1, width=4)


def trained(n_estimators: int, *, seed: int = 5) -> TrainedModel:
    data = cycles_and_stars(18)
    preprocessing = Preprocessing.fit(data)
    config = TrainConfig(**{**vars(CONFIG), "seed": seed})
    build = partial(build_tfgw, architecture=ARCHITECTURE)
    model = train_model(Parts(data), build, config, preprocessing=preprocessing, n_estimators=n_estimators).model
    return TrainedModel(
        model=model,  # type: ignore[arg-type]
        task="classification",
        classes=data.classes,
        preprocessing=preprocessing,
        source={},
    )


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_the_loss_is_the_mean_over_members(task: str) -> None:
    torch.manual_seed(0)
    outputs = torch.randn(4, 7, 3, dtype=torch.float64)
    y = torch.randint(3, (7,)) if task == "classification" else torch.randint(2, (7, 3)).double()
    found = sums(task, outputs, y)  # type: ignore[arg-type]
    members = [sums(task, output, y) for output in outputs]  # type: ignore[arg-type]
    torch.testing.assert_close(found.loss, torch.stack([member.loss for member in members]).mean())
    torch.testing.assert_close(found.score, torch.stack([member.score.double() for member in members]).mean())


def test_members_differ_and_equal_seeds_give_equal_ensembles() -> None:
    one, again, other = trained(3), trained(3), trained(3, seed=6)
    assert isinstance(one.model, Ensemble)
    assert same_weights(one.model, again.model)
    first, second, third = one.members
    assert not same_weights(first, second)
    assert not same_weights(second, third)
    assert not any(same_weights(member, stranger) for member in one.members for stranger in other.members)


def test_one_network_is_no_ensemble() -> None:
    single = trained(1)
    assert not isinstance(single.model, Ensemble)
    assert single.members == [single.model]


def test_at_least_one_network() -> None:
    with pytest.raises(ValueError, match="n_estimators: must be at least 1, got 0"):
        trained(0)


def test_a_file_keeps_an_ensemble(tmp_path: Path) -> None:
    model, others = trained(3), cycles_and_stars(8, seed=2)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert len(loaded.members) == 3
    assert same_weights(loaded.model, model.model)
    assert torch.equal(loaded.outputs(others), model.outputs(others))
    assert loaded.embed(others).shape == (8, 6)


def test_a_file_with_other_members_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained(3)
    monkeypatch.setattr(TrainedModel, "members", property(lambda self: [*self.model.members, self.model.members[0]]))
    save_model(model, tmp_path / "model.safetensors")
    with pytest.raises(FileError, match="not a valid model"):
        load_model(tmp_path / "model.safetensors")


def test_diagnostics_cover_the_templates_of_all_members() -> None:
    found = check_model(trained(3), cycles_and_stars(5, seed=2), n_starts=3)
    assert found.distances.shape == found.renumbered.shape == found.thorough.lower_bounds.shape == (5, 6)
    torch.testing.assert_close(found.diagnosis.distances, found.distances)


def test_estimators_average_their_networks() -> None:
    graphs = list(cycles_and_stars(18))
    labels = [int(graph.y) for graph in graphs]
    settings = {"n_estimators": 2, "num_templates": 3, "epochs": 2, "accelerator": "cpu", "random_state": 0}
    model = TFGWClassifier(**settings).fit(graphs, labels)
    assert model.transform(graphs).shape == (18, 6)
    assert model.templates_.features.shape[0] == 6
    alphas = [float(member.pool.alpha.detach()) for member in model.model_.members]
    assert model.alpha_ == pytest.approx(np.mean(alphas))
    assert model.history_[-1].alpha == pytest.approx(np.mean(alphas))
    gin = GIN(n_estimators=2, epochs=2, accelerator="cpu", random_state=0).fit(graphs, labels)
    assert gin.predict_proba(graphs).shape == (18, 2)


def test_a_saved_classifier_is_the_same_ensemble(tmp_path: Path) -> None:
    graphs = list(cycles_and_stars(18))
    labels = [int(graph.y) for graph in graphs]
    model = TFGWClassifier(n_estimators=2, epochs=2, accelerator="cpu", random_state=0).fit(graphs, labels)
    model.save(tmp_path / "model.safetensors")
    loaded = TFGWClassifier.load(tmp_path / "model.safetensors")
    assert loaded.n_estimators == 2
    assert np.array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))


def test_regressors_average_values() -> None:
    graphs = list(regression_data(1))
    values = [float(graph.y) for graph in graphs]
    model = TFGWRegressor(n_estimators=2, epochs=2, accelerator="cpu", random_state=0).fit(graphs, values)
    assert model.predict(graphs).shape == (len(graphs),)

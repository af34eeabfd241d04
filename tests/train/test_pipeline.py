"""The path from graphs as they were loaded to a trained model."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.small import cycles_and_stars, regression_data, same_weights
from tfgw.datasets import GraphDataset
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import Parts, Preprocessing, TrainConfig, Training, build_tfgw, num_outputs, outputs, train_model
from tfgw.train.checkpoint import FILE_NAME
from tfgw.train.config import config_from
from tfgw.train.tensor_file import read_tensors

SHORT = TrainConfig(epochs=3, batch_size=7, accelerator="cpu", seed=2)
FIXED = {"num_layers": 0, "alpha": 0.4, "learn_templates": False, "learn_weights": False}


def architecture(**changes: Any) -> TFGWConfig:
    sizes = {"in_channels": 3, "out_channels": 2, "num_templates": 2, "template_nodes": 5, "width": 4}
    return TFGWConfig(**{**sizes, **changes})


def trained(config: TrainConfig = SHORT, *, folder: Path | None = None, **changes: Any) -> Training:
    data = cycles_and_stars()
    build = partial(build_tfgw, architecture=architecture(**changes))
    return train_model(Parts(data), build, config, preprocessing=Preprocessing.fit(data), folder=folder)


def test_each_part_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    preprocess = Preprocessing.__call__

    def counted(self: Preprocessing, dataset: GraphDataset) -> GraphDataset:
        calls.append(dataset.name)
        return preprocess(self, dataset)

    monkeypatch.setattr(Preprocessing, "__call__", counted)
    data = cycles_and_stars()
    others = {name: cycles_and_stars(6, seed=1).map(lambda graph: graph) for name in ("validation", "test")}
    for name, part in others.items():
        part.name = name
    parts = Parts(data, **others)
    build = partial(build_tfgw, architecture=architecture())
    training = train_model(parts, build, SHORT, preprocessing=Preprocessing.fit(data))
    assert calls == ["small", "validation", "test"]
    assert training.result.kept is not None
    assert [len(part) for part in training.parts] == [24, 6, 6]


def test_one_seed_gives_one_model_whatever_was_drawn_before() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = trained()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(3)
    assert same_weights(first.model, trained().model)


@pytest.mark.parametrize(("precision", "dtype"), [("float64", torch.float64), ("float32", torch.float32)])
def test_the_model_has_the_precision_of_the_training(precision: str, dtype: torch.dtype) -> None:
    model = trained(config_from(TrainConfig, {"precision": precision}, epochs=1, accelerator="cpu")).model
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_a_run_with_fixed_distances_leaves_what_any_run_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = trained(folder=tmp_path / "quick", **FIXED)
    monkeypatch.setattr("tfgw.train.pipeline.has_fixed_distances", lambda model: False)
    usual = trained(folder=tmp_path / "usual", **FIXED)
    assert isinstance(quick.model, TFGWModel)
    for one, other in zip(quick.model.state_dict().values(), usual.model.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    assert (
        [r.alpha for r in quick.result.records] == [r.alpha for r in usual.result.records] == [pytest.approx(0.4)] * 3
    )
    stored = [read_tensors(tmp_path / name / FILE_NAME, kind="checkpoint")[0] for name in ("quick", "usual")]
    assert stored[0].keys() == stored[1].keys()


@pytest.mark.parametrize("num_layers", [0, 2])
def test_templates_and_what_is_before_them_are_learned(num_layers: int) -> None:
    """Every parameter of a model moves, not only those of the head."""
    before: dict[str, torch.Tensor] = {}

    def build(train: GraphDataset, config: TrainConfig) -> TFGWModel:
        model = build_tfgw(train, config, architecture=architecture(num_layers=num_layers))
        before.update({name: value.detach().clone() for name, value in model.named_parameters()})
        return model

    data = cycles_and_stars()
    model = train_model(Parts(data), build, SHORT, preprocessing=Preprocessing.fit(data)).model
    after = dict(model.named_parameters())
    assert [name for name in after if torch.equal(after[name], before[name].to(after[name].dtype))] == []
    assert {name.split(".")[0] for name in after} == {"pool", "head"} | ({"encoder"} if num_layers else set())


@pytest.mark.parametrize(
    ("given", "precision"), [("float64", "float64"), ("float32", "float64"), ("float64", "float32")]
)
def test_a_new_model_has_no_more_digits_than_the_graphs(given: str, precision: str) -> None:
    graphs = [graph.clone() for graph in cycles_and_stars()]
    for graph in graphs:
        graph.x = (graph.x.double() / 3).to(getattr(torch, given))
    data = GraphDataset.from_graphs(graphs, name="thirds", classes=("star", "cycle"))
    config = config_from(TrainConfig, {"precision": precision}, seed=4)
    model = build_tfgw(data, config, architecture=architecture(num_layers=0))
    expected = torch.float64 if given == precision == "float64" else torch.float32
    assert {parameter.dtype for parameter in model.parameters()} == {expected}


def test_number_of_outputs() -> None:
    assert num_outputs(cycles_and_stars(), "classification") == 2
    assert [num_outputs(regression_data(values), "regression") for values in (1, 2)] == [1, 2]


def test_settings_from_whatever_has_some_of_them() -> None:
    found = config_from(TrainConfig, {"lr": 0.5, "num_templates": 3, "epochs": 7}, epochs=9)
    assert found == TrainConfig(lr=0.5, epochs=9)


def test_graphs_to_predict_need_no_targets() -> None:
    data = regression_data(1)
    graphs = [graph.clone() for graph in data[[4, 1, 3]]]
    for graph in graphs:
        del graph.y
    parts = Parts(data, None, GraphDataset.from_graphs(graphs, name="unlabelled"))
    config = TrainConfig(epochs=1, task="regression", accelerator="cpu")
    build = partial(build_tfgw, architecture=architecture(out_channels=1))
    training = train_model(parts, build, config, preprocessing=Preprocessing.fit(data))
    assert training.target_scaler is not None
    predicted = training.target_scaler.restored(outputs(training.model, training.parts.test))
    assert predicted.shape == (3, 1)


def test_a_missing_gpu_is_reported_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(Preprocessing, "__call__", lambda *_: pytest.fail("graphs were preprocessed"))
    with pytest.raises(ValueError, match="accelerator: PyTorch finds no GPU"):
        trained(replace(SHORT, accelerator="cuda"))

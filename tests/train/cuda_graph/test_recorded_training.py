"""Training as CUDA graphs: here with emulated kernels on tensors of the CPU, and calls in place of replays."""

import gc
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.nn.cuda.emulated_layers import emulate
from tests.ot.cuda.emulation import EmulatedGpu, emulated_for_eager_calls
from tests.train.cuda_graph.training import (
    NEW_MODELS,
    assert_same_training,
    sizes_replayed,
    train,
    train_new,
    with_default_recipe,
)
from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.nn import TFGWModel
from tfgw.ot.backends.cuda.units import LAYERS
from tfgw.train import FitResult, TrainConfig, fit, trainer
from tfgw.train.batches import GraphStore, shuffled
from tfgw.train.cuda_graph import Pass, RecordedPass
from tfgw.train.graph_weights import with_graph_weights

SHORT = TrainConfig(epochs=3, batch_size=5, validate_every=2, accelerator="cpu", seed=3)


class Calls:
    """Replaces the recorder: what would be replayed is called, and nobody reads the kernels' flag."""

    def __init__(self, gpu: EmulatedGpu) -> None:
        self.gpu = gpu

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        function()

        def replay() -> None:
            self.gpu.driver.capturing = True
            function()
            self.gpu.driver.capturing = False

        return replay


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    return emulated_for_eager_calls(monkeypatch)


@pytest.fixture
def replayed(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes trainings record; the sizes of the batches that were replayed."""
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: None)
    monkeypatch.setattr(trainer, "recording", lambda: nullcontext(Calls(gpu)))
    return sizes_replayed(monkeypatch)


train_small = partial(train, SHORT, graphs=12, validation=7)


def test_a_recorded_run_is_like_any_other(gpu: EmulatedGpu, request: pytest.FixtureRequest) -> None:
    expected = train_small()
    sizes = request.getfixturevalue("replayed")
    found = train_small()
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2, 5, 5, 2, 5, 2]  # validated after the second epoch and the last
    assert_same_training(found, expected)


@pytest.mark.parametrize("name", NEW_MODELS)
def test_models_that_take_part(name: str, gpu: EmulatedGpu, request: pytest.FixtureRequest) -> None:
    expected = train_new(name, SHORT, graphs=12, validation=7)
    sizes = request.getfixturevalue("replayed")
    found = train_new(name, SHORT, graphs=12, validation=7)
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2, 5, 5, 2, 5, 2]
    assert_same_training(found, expected)


def test_a_run_with_the_default_recipe(gpu: EmulatedGpu, request: pytest.FixtureRequest) -> None:
    """Rates change from step to step, and statistics are computed before each validation, outside of the recording."""
    config = with_default_recipe(SHORT)
    expected = train_new("default recipe", config, graphs=12, validation=7)
    sizes = request.getfixturevalue("replayed")
    found = train_new("default recipe", config, graphs=12, validation=7)
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2, 5, 5, 2, 5, 2]
    assert_same_training(found, expected)


def test_a_run_with_the_kernels_of_layers_and_optimiser(
    gpu: EmulatedGpu, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(with_default_recipe(SHORT), epochs=2, lr=0.001)
    expected = train_new("default recipe", config, graphs=12, validation=7)
    sizes = request.getfixturevalue("replayed")
    launched = emulate(monkeypatch)
    found = train_new("default recipe", config, graphs=12, validation=7)
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2]
    kernels = {name for name in LAYERS.kernels if name.endswith("float64")}
    assert set(launched) == kernels - {"tfgw_neighbour_sums_float64"}  # edges are not sorted
    assert_same_training(found, expected)


def test_a_run_with_balanced_batches_and_an_evaluated_selection(
    gpu: EmulatedGpu, request: pytest.FixtureRequest
) -> None:
    config = replace(SHORT, balanced_batches=True, selection="evaluated")
    expected = train_new("authors' variants", config, graphs=12, validation=7)
    sizes = request.getfixturevalue("replayed")
    found = train_new("authors' variants", config, graphs=12, validation=7)
    evaluations = [5, 2, 5, 5, 2]  # of the validation graphs, then of the training graphs
    assert sizes == [4] * 6 + evaluations + [4] * 3 + evaluations
    assert_same_training(found, expected)


def test_batches_without_room_are_not_replayed(
    gpu: EmulatedGpu, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train_small()
    sizes = request.getfixturevalue("replayed")
    monkeypatch.setattr("tfgw.train.cuda_graph.padded_batches.SPREAD", 0.0)
    found = train_small()
    assert -1 in sizes
    assert any(size > 0 for size in sizes)
    assert_same_training(found, expected)


def test_a_recorded_run_goes_on_where_it_was_stopped(replayed: list[int], tmp_path: Path) -> None:
    data = cycles_and_stars(12)
    whole, parts = small_model(data, dropout=0.2), small_model(data, dropout=0.2)
    fit(whole, data, config=SHORT)
    for epochs in (1, 3):
        config = TrainConfig(**{**vars(SHORT), "epochs": epochs})
        fit(parts, data, config=config, folder=tmp_path, resume=True)
    assert replayed
    assert same_weights(whole, parts)


def test_a_loss_that_is_not_finite_changes_no_weights(replayed: list[int]) -> None:
    data = regression_data(1)
    data = data.with_tensors({"y": data.stacked["y"] * 1e300})
    model = small_model(data, outputs=1)
    before = {name: parameter.clone() for name, parameter in model.double().named_parameters()}
    with pytest.raises(FloatingPointError, match="epoch 1 is not finite"):
        fit(model, data, config=TrainConfig(task="regression", accelerator="cpu", batch_size=7))
    assert replayed
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, before[name], rtol=0, atol=1e-7, msg=name)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_an_invalid_graph_is_named(replayed: list[int], part: str) -> None:
    """Though it is not among those with which a pass is recorded, and nobody looks while it is replayed."""
    data = {"train": cycles_and_stars(12), "validation": cycles_and_stars(12, seed=1)}
    order = shuffled(12, rng=np.random.default_rng([SHORT.seed, 1])) if part == "train" else torch.arange(12)
    last = int(order[9])
    data[part] = data[part].with_tensors({"x": data[part].stacked["x"].clone()})
    data[part].stacked["x"][int(data[part].slices["x"][last]), 0] = torch.inf
    model = small_model(cycles_and_stars(12))
    with pytest.raises(ValueError, match=r"^x: graph \d+"):
        fit(model, data["train"], data["validation"], config=SHORT)
    assert replayed


def test_what_is_no_graph_of_the_run_is_not_looked_at(replayed: list[int]) -> None:
    """Padding has to come from somewhere."""
    data = cycles_and_stars(13)
    model = small_model(data)
    data = data.with_tensors({"x": data.stacked["x"].clone()})
    data.stacked["x"][0] = torch.nan
    assert fit(model, data[1:], config=SHORT).records[-1].loss > 0
    assert replayed


@pytest.mark.parametrize(
    ("change", "message"),
    [({"max_iter": 0}, r"^max_iter: must be at least 1"), ({"tol": -1.0}, r"^tol: ")],
)
def test_wrong_settings_are_told_as_ever(replayed: list[int], change: dict[str, float], message: str) -> None:
    data = cycles_and_stars(12)
    model = small_model(data)
    vars(model.pool).update(change)
    with pytest.raises(ValueError, match=message):
        fit(model, data, config=SHORT)
    assert not replayed


def test_weights_that_explode_while_recording(replayed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first size is recorded with a step, after which nothing of the second can be solved: told as ever."""
    data = cycles_and_stars(12)
    config = TrainConfig(**{**vars(SHORT), "lr": 1e200})
    told = []
    for reason in (None, "a reason"):
        monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes, reason=reason: reason)
        with pytest.raises(ValueError, match=r"^template_features: template 0 ") as error:
            fit(small_model(data), data, config=config)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_without_room_to_record_steps_go_one_by_one(
    replayed: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NoRoom:
        def record(self, function: Callable[[], None]) -> None:
            function()
            raise torch.OutOfMemoryError

    monkeypatch.setattr(trainer, "recording", lambda: nullcontext(NoRoom()))
    found = train_small()
    assert not replayed
    assert [record.message for record in caplog.records if record.name == "tfgw"] == [
        "tfgw: not enough GPU memory to record steps as CUDA graphs; they run one by one, which is slower"
    ]
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "a reason")
    assert_same_training(found, train_small())


def test_a_finished_run_records_nothing(replayed: list[int], gpu: EmulatedGpu, tmp_path: Path) -> None:
    data = cycles_and_stars(12)
    fit(small_model(data), data, config=SHORT, folder=tmp_path)
    gpu.launched.clear()
    model = small_model(data).eval()
    fit(model, data, config=SHORT, folder=tmp_path, resume=True)
    assert not gpu.launched
    assert not model.training


def example_pass() -> Pass:
    store = GraphStore(cycles_and_stars(12), dtype=torch.float64)
    return Pass(store, list(torch.arange(12).split(5)))


def test_a_pass_by_sizes() -> None:
    sizes = example_pass().by_size()
    assert {size: [graphs.tolist() for graphs in batches] for size, batches in sizes.items()} == {
        5: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
        2: [[10, 11]],
    }


def test_nothing_keeps_a_pass_alive(gpu: EmulatedGpu) -> None:
    """A GPU's memory would wait for Python's collector, which does not know of it."""
    one = RecordedPass(lambda batch: torch.zeros(2, dtype=torch.float64), example_pass(), Calls(gpu))
    alive = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert alive() is None
    finally:
        gc.enable()


def test_recording_leaves_a_model_as_it_was(replayed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if that fails."""
    data = cycles_and_stars(12)
    model = small_model(data, layers=1).double()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def fail(*_: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(trainer, "validation_step", lambda model, task: fail)
    with pytest.raises(RuntimeError, match="no room"):
        fit(model, data, cycles_and_stars(7, seed=1), config=SHORT)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_weights_of_graphs_are_recorded(gpu: EmulatedGpu, request: pytest.FixtureRequest) -> None:
    weights = np.random.default_rng(0).uniform(0.1, 4.0, size=12)

    def train_weighted() -> tuple[TFGWModel, FitResult]:
        data = with_graph_weights(cycles_and_stars(12), weights)
        model = small_model(data, layers=2)
        return model, fit(model, data, cycles_and_stars(7, seed=1), config=SHORT)

    expected = train_weighted()
    sizes = request.getfixturevalue("replayed")
    found = train_weighted()
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2, 5, 5, 2, 5, 2]
    assert_same_training(found, expected)
    assert found[1].records[0].loss != pytest.approx(train_small()[1].records[0].loss, rel=1e-3)

"""Training as CUDA graphs: here with emulated kernels, on tensors of the CPU, and with nothing recorded."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.ot.cuda.emulation import EmulatedGpu, emulated_for_eager_calls
from tests.train.capturing import assert_same_training, sizes_taken, train
from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.datasets import GraphDataset, ShortestPaths
from tfgw.nn import TFGWModel, TFGWPooling
from tfgw.train import TrainConfig, fit, trainer
from tfgw.train.batches import GraphStore, shuffled
from tfgw.train.captured import CapturedPass, Pass, can_be_captured

SHORT = TrainConfig(epochs=3, batch_size=5, validate_every=2, accelerator="cpu", seed=3)


class Calls:
    """Takes the recorder's place: what would be replayed is called, and nobody reads the kernels' flag."""

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
def captured(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes runs capture; the sizes of the batches that were replayed."""
    monkeypatch.setattr(trainer, "can_be_captured", lambda model, passes: True)
    monkeypatch.setattr(trainer, "recording", lambda: nullcontext(Calls(gpu)))
    return sizes_taken(monkeypatch)


train_small = partial(train, SHORT, graphs=12, validation=7)


def test_a_captured_run_is_like_any_other(gpu: EmulatedGpu, request: pytest.FixtureRequest) -> None:
    expected = train_small()
    sizes = request.getfixturevalue("captured")
    found = train_small()
    assert sizes == [5, 5, 2, 5, 5, 2, 5, 2, 5, 5, 2, 5, 2]  # validated after the second epoch and the last
    assert_same_training(found, expected)


def test_batches_without_room_are_not_replayed(
    gpu: EmulatedGpu, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train_small()
    sizes = request.getfixturevalue("captured")
    monkeypatch.setattr("tfgw.train.padded_batches.SPREAD", 0.0)
    found = train_small()
    assert -1 in sizes
    assert any(size > 0 for size in sizes)
    assert_same_training(found, expected)


def test_a_captured_run_goes_on_where_it_was_stopped(captured: list[int], tmp_path: Path) -> None:
    data = cycles_and_stars(12)
    whole, parts = small_model(data, dropout=0.2), small_model(data, dropout=0.2)
    fit(whole, data, config=SHORT)
    for epochs in (1, 3):
        config = TrainConfig(**{**vars(SHORT), "epochs": epochs})
        fit(parts, data, config=config, folder=tmp_path, resume=True)
    assert captured
    assert same_weights(whole, parts)


def test_a_loss_that_is_not_finite_changes_no_weights(captured: list[int]) -> None:
    data = regression_data(1)
    data._data.y = data._data.y * 1e300
    model = small_model(data, outputs=1)
    before = {name: parameter.clone() for name, parameter in model.double().named_parameters()}
    with pytest.raises(FloatingPointError, match="epoch 1 is not finite"):
        fit(model, data, config=TrainConfig(task="regression", accelerator="cpu", batch_size=7))
    assert captured
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, before[name], rtol=0, atol=1e-7, msg=name)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_an_invalid_graph_is_named(captured: list[int], part: str) -> None:
    """Though it is not among those with which a pass is recorded, and nobody looks while it is replayed."""
    data = {"train": cycles_and_stars(12), "validation": cycles_and_stars(12, seed=1)}
    order = shuffled(12, rng=np.random.default_rng([SHORT.seed, 1])) if part == "train" else torch.arange(12)
    last = int(order[9])
    broken = data[part]._data
    broken.x = broken.x.clone()
    broken.x[int(data[part].slices["x"][last]), 0] = torch.inf
    model = small_model(cycles_and_stars(12))
    with pytest.raises(ValueError, match=r"^x: graph \d+"):
        fit(model, data["train"], data["validation"], config=SHORT)
    assert captured


def test_what_is_no_graph_of_the_run_is_not_looked_at(captured: list[int]) -> None:
    """Padding has to come from somewhere."""
    data = cycles_and_stars(13)
    model = small_model(data)
    data._data.x = data._data.x.clone()
    data._data.x[0] = torch.nan
    assert fit(model, data[1:], config=SHORT).records[-1].loss > 0
    assert captured


@pytest.mark.parametrize(
    ("change", "message"),
    [({"max_iter": 0}, r"^max_iter: must be at least 1"), ({"tol": -1.0}, r"^tol: ")],
)
def test_wrong_settings_are_told_as_ever(captured: list[int], change: dict[str, float], message: str) -> None:
    data = cycles_and_stars(12)
    model = small_model(data)
    vars(model.pool).update(change)
    with pytest.raises(ValueError, match=message):
        fit(model, data, config=SHORT)
    assert not captured


def test_weights_that_explode_while_recording(captured: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first size is recorded with a step, after which nothing of the second can be solved: told as ever."""
    data = cycles_and_stars(12)
    config = TrainConfig(**{**vars(SHORT), "lr": 1e200})
    told = []
    for answer in (True, False):
        monkeypatch.setattr(trainer, "can_be_captured", lambda model, passes, answer=answer: answer)
        with pytest.raises(ValueError, match=r"^template_features: template 0 ") as error:
            fit(small_model(data), data, config=config)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_without_room_to_record_steps_go_one_by_one(
    captured: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NoRoom:
        def record(self, function: Callable[[], None]) -> None:
            function()
            raise torch.OutOfMemoryError

    monkeypatch.setattr(trainer, "recording", lambda: nullcontext(NoRoom()))
    found = train_small()
    assert not captured
    assert [record.message for record in caplog.records if record.name == "tfgw"] == [
        "tfgw: the GPU's memory has no room for steps as CUDA graphs; they go one by one, which takes longer"
    ]
    monkeypatch.setattr(trainer, "can_be_captured", lambda model, passes: False)
    assert_same_training(found, train_small())


def test_a_finished_run_records_nothing(captured: list[int], gpu: EmulatedGpu, tmp_path: Path) -> None:
    data = cycles_and_stars(12)
    fit(small_model(data), data, config=SHORT, folder=tmp_path)
    gpu.launched.clear()
    model = small_model(data).eval()
    fit(model, data, config=SHORT, folder=tmp_path, resume=True)
    assert not gpu.launched
    assert not model.training


def pass_of(data: GraphDataset | None = None) -> list[Pass]:
    store = GraphStore(data or cycles_and_stars(12), dtype=torch.float64)
    return [Pass(store, list(torch.arange(12).split(5)))]


def test_a_pass_by_sizes() -> None:
    sizes = pass_of()[0].by_size()
    assert {size: [graphs.tolist() for graphs in batches] for size, batches in sizes.items()} == {
        5: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
        2: [[10, 11]],
    }


def test_nothing_keeps_a_pass_alive(gpu: EmulatedGpu) -> None:
    """A GPU's memory would wait for Python's collector, which does not know of it."""
    one = CapturedPass(lambda batch: torch.zeros(2, dtype=torch.float64), pass_of()[0], Calls(gpu))
    alive = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert alive() is None
    finally:
        gc.enable()


def test_recording_leaves_a_model_as_it_was(captured: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_can_be_captured(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    data = cycles_and_stars(12)
    model = small_model(data)
    assert not can_be_captured(model, pass_of())  # on a CPU
    monkeypatch.setattr("tfgw.train.captured._gpu_can_solve", lambda layer, one: True)
    assert can_be_captured(model, pass_of())
    assert not can_be_captured(model, pass_of(data.map(ShortestPaths())))
    assert not can_be_captured(torch.nn.Linear(2, 2), pass_of())


@contextmanager
def several_starts(model: TFGWModel) -> Iterator[None]:
    model.pool.n_starts = 2
    yield


@contextmanager
def another_norm(model: TFGWModel) -> Iterator[None]:
    model.encoder.norms[0] = torch.nn.BatchNorm1d(4)
    yield


@contextmanager
def another_encoder(model: TFGWModel) -> Iterator[None]:
    model.encoder = torch.nn.Identity()
    yield


@contextmanager
def compiled(model: TFGWModel) -> Iterator[None]:
    model.compile()
    yield


@contextmanager
def hook_of_a_module(model: TFGWModel) -> Iterator[None]:
    model.head.register_forward_hook(lambda *_: None)
    yield


@contextmanager
def hook_of_a_convolution(model: TFGWModel) -> Iterator[None]:
    model.encoder.convs[0].register_propagate_forward_hook(lambda *_: None)
    yield


@contextmanager
def hook_of_all_modules(model: TFGWModel) -> Iterator[None]:
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def hook_of_a_parameter(model: TFGWModel) -> Iterator[None]:
    model.pool.template_features.register_hook(lambda grad: grad)
    yield


@contextmanager
def hook_after_a_gradient(model: TFGWModel) -> Iterator[None]:
    model.pool.template_features.register_post_accumulate_grad_hook(lambda parameter: None)
    yield


@contextmanager
def anomalies(model: TFGWModel) -> Iterator[None]:
    with torch.autograd.detect_anomaly(check_nan=False):
        yield


@contextmanager
def operators_watched(model: TFGWModel) -> Iterator[None]:
    with FlopCounterMode(display=False):
        yield


@contextmanager
def another_loss(model: TFGWModel) -> Iterator[None]:
    model.auxiliary_loss = 0.0  # type: ignore[assignment]
    yield


@pytest.mark.parametrize(
    "change",
    [
        several_starts,
        another_norm,
        another_encoder,
        compiled,
        hook_of_a_module,
        hook_of_a_convolution,
        hook_of_all_modules,
        hook_of_a_parameter,
        hook_after_a_gradient,
        anomalies,
        operators_watched,
        another_loss,
    ],
)
def test_what_cannot_be_captured(
    change: Callable[[TFGWModel], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfgw.train.captured._gpu_can_solve", lambda layer, one: True)
    model = small_model(cycles_and_stars(12))
    with change(model):
        assert not can_be_captured(model, pass_of())


@pytest.mark.parametrize(
    ("generation", "free", "template_nodes", "can_solve"),
    [(9, 1 << 30, 5, True), (7, 1 << 30, 5, False), (9, 1 << 10, 5, False), (9, 1 << 30, 129, False)],
)
def test_what_a_gpu_can_solve(
    generation: int, free: int, template_nodes: int, can_solve: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where it is too old, has no room for the graphs, or its kernels none for the templates."""
    monkeypatch.setattr("tfgw.train.captured.gpu", lambda index: EmulatedGpu(generation=generation))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 1 << 40))
    data = cycles_and_stars(12)
    model = small_model(data)
    model.pool = TFGWPooling(3 + 4, 2, template_nodes)
    store = GraphStore(data, dtype=torch.float64, device="cuda:0")
    assert can_be_captured(model, [Pass(store, list(torch.arange(12).split(5)))]) == can_solve

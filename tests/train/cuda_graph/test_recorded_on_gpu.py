"""Training as CUDA graphs, recorded and replayed."""

import logging
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.train.cuda_graph.training import (
    NEW_MODELS,
    assert_same_training,
    held_after_trainings,
    sizes_replayed,
    train,
    train_new,
    with_default_recipe,
)
from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.baselines.diffpool import DiffPoolModel
from tfgw.train import TrainConfig, fit, trainer
from tfgw.train.batches import shuffled
from tfgw.train.cuda_graph import recording

pytest.importorskip("cupy", reason="CuPy is not installed")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

SHORT = TrainConfig(epochs=6, batch_size=9, validate_every=2, accelerator="cuda", seed=3)


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many graphs were replayed at a time; -1 for batches that do not fit."""
    return sizes_replayed(monkeypatch)


train_small = partial(train, graphs=24, validation=13)


def test_replayed_steps_are_like_any_other(monkeypatch: pytest.MonkeyPatch, replayed: list[int]) -> None:
    found = train_small(SHORT)
    assert replayed[:3] == [9, 9, 6]
    replayed.clear()
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "a reason")
    expected = train_small(SHORT)
    assert not replayed
    assert_same_training(found, expected)


@pytest.mark.parametrize("name", NEW_MODELS)
def test_models_that_take_part(name: str, monkeypatch: pytest.MonkeyPatch, replayed: list[int]) -> None:
    """A user's own encoder, an auxiliary loss, and baselines. With short steps: the gradient of a bias before a norm is
    rounding alone, which Adam scales up."""
    config = TrainConfig(**{**vars(SHORT), "lr": 0.001})
    found = train_new(name, config, graphs=24, validation=13)
    assert replayed[:3] == [9, 9, 6]
    assert min(replayed) > 0
    replayed.clear()
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "a reason")
    expected = train_new(name, config, graphs=24, validation=13)
    assert not replayed
    assert_same_training(found, expected)


def test_the_default_recipe(monkeypatch: pytest.MonkeyPatch, replayed: list[int]) -> None:
    """Learning rates are read when a step is replayed, not when it was recorded."""
    config = with_default_recipe(TrainConfig(**{**vars(SHORT), "lr": 0.001}))
    found = train_new("default recipe", config, graphs=24, validation=13)
    assert min(replayed) > 0
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "a reason")
    assert_same_training(found, train_new("default recipe", config, graphs=24, validation=13))


def test_rates_do_not_follow_the_default_precision(replayed: list[int]) -> None:
    config = with_default_recipe(SHORT)
    try:
        torch.set_default_dtype(torch.float64)
        train_new("default recipe", config, graphs=24, validation=13)
    finally:
        torch.set_default_dtype(torch.float32)
    assert min(replayed) > 0


def test_the_log_says_why_a_model_is_not_recorded(caplog: pytest.LogCaptureFixture, replayed: list[int]) -> None:
    caplog.set_level(logging.INFO, logger="tfgw")
    data = cycles_and_stars(24)
    config = TrainConfig(**{**vars(SHORT), "epochs": 1})
    fit(DiffPoolModel(3, 2, max_nodes=7, num_layers=1, width=4), data, config=config)
    assert not replayed
    assert [record.message for record in caplog.records if record.name == "tfgw"] == [
        "tfgw: steps are not recorded as CUDA graphs: the model (DiffPoolModel) does not declare that it supports "
        "padded batches"
    ]


def test_on_the_cpu_it_is_the_same_training(replayed: list[int]) -> None:
    found = train_small(SHORT)
    assert replayed
    assert_same_training(found, train_small(TrainConfig(**{**vars(SHORT), "accelerator": "cpu"})))


def test_steps_between_replays(monkeypatch: pytest.MonkeyPatch, replayed: list[int]) -> None:
    """Batches without room are done without a graph, next to those that have one."""
    monkeypatch.setattr("tfgw.train.cuda_graph.padded_batches.SPREAD", 0.0)
    found = train_small(SHORT)
    assert set(replayed) >= {-1, 9}
    monkeypatch.setattr(trainer, "unsupported_reason", lambda model, passes: "a reason")
    assert_same_training(found, train_small(SHORT))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_dropout_is_drawn_by_the_seed(precision: str, replayed: list[int]) -> None:
    config = TrainConfig(**{**vars(SHORT), "precision": precision})
    one, other, without = (
        [record.loss for record in train_small(config, dropout=dropout)[1].records] for dropout in (0.3, 0.3, 0.0)
    )
    assert min(replayed) > 0
    assert one == pytest.approx(other, rel=1e-9 if precision == "float64" else 1e-3)
    assert not any(a == pytest.approx(b, rel=1e-3) for a, b in zip(one, without, strict=True))


def test_dropout_is_drawn_anew_in_each_replay(replayed: list[int]) -> None:
    """Of all graphs at once, and with weights that stay as they are, but for rounding. With two layers: with one there
    are ties, which that may break, on a CPU too."""
    data = cycles_and_stars(24)
    config = TrainConfig(**{**vars(SHORT), "batch_size": 24, "lr": 1e-12})
    model = partial(small_model, data, layers=2)
    losses = [record.loss for record in fit(model(dropout=0.3), data, config=config).records]
    assert replayed == [24] * 6
    assert len({round(loss, 6) for loss in losses}) == 6
    same = [record.loss for record in fit(model(), data, config=config).records]
    assert same == pytest.approx([same[0]] * 6, rel=1e-6)


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, replayed: list[int]) -> None:
    data = cycles_and_stars(24)
    whole, parts = small_model(data, dropout=0.2), small_model(data, dropout=0.2)
    fit(whole, data, config=SHORT)
    for epochs in (2, 6):
        config = TrainConfig(**{**vars(SHORT), "epochs": epochs})
        fit(parts, data, config=config, folder=tmp_path, resume=True)
    assert min(replayed) > 0
    for name, tensor in whole.state_dict().items():
        torch.testing.assert_close(parts.state_dict()[name], tensor, rtol=1e-6, atol=1e-9, msg=name)


def test_the_bits_of_two_runs(replayed: list[int]) -> None:
    """One layer: what PyTorch sums over edges, in any order, are features that are given."""
    data = cycles_and_stars(24)
    data = data.with_tensors({"x": data.stacked["x"].round(decimals=1)})
    models = [small_model(data), small_model(data)]
    for model in models:
        fit(model, data, config=SHORT)
    assert replayed
    assert same_weights(*models)


def test_other_threads_may_take_memory_while_steps_are_recorded() -> None:
    total = torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    held = []  # so that the driver is asked for more each time
    with ThreadPoolExecutor(1) as other:

        def step() -> None:
            held.append(other.submit(torch.empty, 64 << 20, dtype=torch.uint8, device="cuda").result())
            total.add_(1)

        with recording() as recorder:
            replay = recorder.record(step)
    assert len(held) == 2
    total.zero_()
    for _ in range(3):
        replay()
    assert int(total) == 3


def test_the_next_trainings_take_no_more_memory() -> None:
    """They did, 64 MiB for each step that was recorded, until all streams of the process were known to cuBLAS: hence in
    a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        held = process.submit(held_after_trainings, SHORT, 4).result()
    assert held[-1] - held[1] < 8 << 20


def test_a_loss_that_is_not_finite(replayed: list[int]) -> None:
    data = regression_data(1)
    data = data.with_tensors({"y": data.stacked["y"] * 1e300})
    model = small_model(data, outputs=1)
    before = {name: parameter.clone() for name, parameter in model.double().named_parameters()}
    with pytest.raises(FloatingPointError, match="epoch 1 is not finite"):
        fit(model, data, config=TrainConfig(task="regression", accelerator="cuda", batch_size=7))
    assert min(replayed) > 0
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.cpu(), before[name], rtol=0, atol=1e-7, msg=name)


def test_an_invalid_graph_is_named(replayed: list[int]) -> None:
    """Though it is not among those with which a pass is recorded."""
    data = cycles_and_stars(24)
    model = small_model(data)
    second_batch = shuffled(24, rng=np.random.default_rng([SHORT.seed, 1]))[9:18]
    data = data.with_tensors({"x": data.stacked["x"].clone()})
    data.stacked["x"][int(data.slices["x"][int(second_batch[0])]), 0] = torch.inf
    with pytest.raises(ValueError, match=r"^x: graph \d+"):
        fit(model, data, config=SHORT)
    assert replayed == [9, 9, 6]

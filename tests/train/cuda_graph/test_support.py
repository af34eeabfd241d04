"""Which models and data are recorded. The GPU is not there, but is asked for nothing but its properties."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.nn import GINConv

from tests.ot.cuda.emulation import EmulatedGpu
from tests.train.cuda_graph.training import NEW_MODELS
from tests.train.small import cycles_and_stars, small_model
from tfgw.baselines.diffpool import DiffPoolModel
from tfgw.baselines.drop_gin import DropGINModel
from tfgw.baselines.ot_gnn import OTGNNModel
from tfgw.baselines.ppgn import PPGNModel
from tfgw.datasets import GraphDataset, ShortestPaths
from tfgw.nn import GINEncoder, TFGWModel, TFGWPooling
from tfgw.nn.linear import Linear
from tfgw.train.batches import GraphStore
from tfgw.train.cuda_graph import ROW_WISE, Pass, unsupported_reason


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    set_device(monkeypatch, EmulatedGpu())


def set_device(monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu, free: int = 1 << 30) -> None:
    monkeypatch.setattr("tfgw.ot.backends.cuda.gpu_of", lambda device: gpu)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 1 << 40))


def passes(data: GraphDataset | None = None, *, device: str = "cuda:0") -> list[Pass]:
    store = GraphStore(data or cycles_and_stars(12), dtype=torch.float64, device=device)
    return [Pass(store, list(torch.arange(12).split(5)))]


def test_a_plain_model_is_recorded() -> None:
    assert unsupported_reason(small_model(cycles_and_stars(12), layers=2, dropout=0.1), passes()) is None


@pytest.mark.parametrize("name", NEW_MODELS)
def test_models_that_take_part(name: str) -> None:
    assert unsupported_reason(NEW_MODELS[name](cycles_and_stars(12)), passes()) is None


def test_ot_gnn_takes_part_within_the_limits_of_its_layer() -> None:
    assert unsupported_reason(OTGNNModel(3, 2, num_templates=2, template_nodes=5), passes()) is None
    reason = "pool (TWPooling): templates have 513 nodes, more than 512"
    assert unsupported_reason(OTGNNModel(3, 2, num_templates=2, template_nodes=513), passes()) == reason


def test_data_that_cannot_be_recorded() -> None:
    data = cycles_and_stars(12)
    model = small_model(data)
    assert unsupported_reason(model, passes(device="cpu")) == "the graphs are not on a GPU"
    with_matrices = passes(data.map(ShortestPaths()))
    assert unsupported_reason(model, with_matrices) == "the graphs have structure matrices, which cannot be padded"
    without_targets = passes()
    del without_targets[0].store.tensors["y"]
    assert unsupported_reason(model, passes() + without_targets) == "the graphs have no targets"


class Undeclared(nn.Module):
    out_channels = 3


class SubclassOfDeclared(GINEncoder):
    """May compute anything."""


class Declared(nn.Module):
    """Says so though its parts do not."""

    supports_padding = True

    def __init__(self) -> None:
        super().__init__()
        self.inner = Undeclared()


def with_encoder(encoder: nn.Module) -> TFGWModel:
    model = small_model(cycles_and_stars(12))
    model.encoder = encoder  # type: ignore[assignment]
    return model


def another_norm() -> TFGWModel:
    model = small_model(cycles_and_stars(12))
    model.encoder.norms[0] = nn.BatchNorm1d(4)  # type: ignore[attr-defined]
    return model


@pytest.mark.parametrize(
    ("new_model", "module"),
    [
        (lambda: with_encoder(Undeclared()), "encoder (Undeclared)"),
        (lambda: with_encoder(SubclassOfDeclared(3)), "encoder (SubclassOfDeclared)"),
        (lambda: with_encoder(Declared()), "encoder.inner (Undeclared)"),
        (lambda: with_encoder(GINConv(Linear(3, 3), aggr="median")), "encoder.aggr_module (MedianAggregation)"),
        (another_norm, "encoder.norms.0 (BatchNorm1d)"),
        (lambda: DiffPoolModel(3, 2, max_nodes=7), "the model (DiffPoolModel)"),
        (lambda: PPGNModel(3, 2, num_blocks=2, width=4, depth=2), "the model (PPGNModel)"),
        (lambda: DropGINModel(3, 2), "the model (DropGINModel)"),
    ],
)
def test_the_reason_names_the_module(new_model: Callable[[], nn.Module], module: str) -> None:
    expected = f"{module} does not declare that it supports padded batches"
    assert unsupported_reason(new_model(), passes()) == expected


def test_modules_of_others_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfgw.train.cuda_graph.support.ROW_WISE", {*ROW_WISE, Undeclared})
    assert unsupported_reason(with_encoder(Undeclared()), passes()) is None


def test_a_layer_on_matrices() -> None:
    model = small_model(cycles_and_stars(12))
    vars(model.pool).update(structure="shortest_path")
    reason = "structure='shortest_path' uses matrices, which cannot be padded"
    assert unsupported_reason(model, passes()) == f"pool (TFGWPooling): {reason}"


@pytest.mark.parametrize("change", [{"n_starts": 12}, {"start_kinds": ("anchored",)}])
def test_several_starts_are_recorded(change: dict[str, object]) -> None:
    model = small_model(cycles_and_stars(12))
    vars(model.pool).update(change)
    assert unsupported_reason(model, passes()) is None


def test_too_many_starts_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    set_device(monkeypatch, EmulatedGpu(memory=1 << 24), 1 << 30)
    model = small_model(cycles_and_stars(12))
    assert unsupported_reason(model, passes()) is None
    model.pool.n_starts = 100_000
    reason = unsupported_reason(model, passes())
    assert reason is not None
    assert reason.endswith(", with 100000 starts")


@pytest.mark.parametrize(
    ("generation", "free", "template_nodes", "reason"),
    [
        (9, 1 << 30, 5, None),
        (7, 1 << 30, 5, "pool (TFGWPooling): the GPU is older than compute capability 8.0"),
        (9, 1 << 10, 5, "the graphs take more than a quarter of the GPU's free memory"),
        (9, 1 << 30, 513, "pool (TFGWPooling): templates have 513 nodes, more than 512"),
    ],
)
def test_limits_of_a_gpu(
    generation: int, free: int, template_nodes: int, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_device(monkeypatch, EmulatedGpu(generation=generation), free)
    model = small_model(cycles_and_stars(12))
    model.pool = TFGWPooling(3 + 4, 2, template_nodes)
    assert unsupported_reason(model, passes()) == reason


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


@pytest.mark.parametrize(
    "observe",
    [
        compiled,
        hook_of_a_module,
        hook_of_a_convolution,
        hook_of_all_modules,
        hook_of_a_parameter,
        hook_after_a_gradient,
        anomalies,
        operators_watched,
    ],
)
def test_observers_would_be_bypassed(observe: Callable[[TFGWModel], AbstractContextManager[None]]) -> None:
    model = small_model(cycles_and_stars(12))
    with observe(model):
        assert unsupported_reason(model, passes()) == "hooks, tracing or anomaly detection observe its steps"

"""What tests of training as CUDA graphs share, with a GPU or without."""

import gc
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from tests.train.small import cycles_and_stars, small_model
from tfgw.baselines.mlp import MLPModel
from tfgw.baselines.ot_gnn import OTGNNModel
from tfgw.datasets import GraphDataset
from tfgw.nn import Ensemble, GINModel, TFGWConfig, TFGWModel
from tfgw.nn.batch_norm import BatchNorm
from tfgw.nn.padding import current_padding
from tfgw.train import FitResult, TrainConfig, fit
from tfgw.train.config import config_from
from tfgw.train.cuda_graph import RecordedPass
from tfgw.train.recipes import RECIPES


class CentredEncoder(nn.Module):
    """The example of :mod:`tfgw.train.cuda_graph`."""

    supports_padding = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.out_channels = channels
        self.conv = GraphConv(channels, channels)
        self.norm = BatchNorm(channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        padding = current_padding()
        mean = x.mean(0) if padding is None else (padding.share * x).sum(0)
        return self.norm(self.conv(x - mean, edge_index))


class RegularisedModel(TFGWModel):
    """A model with an auxiliary loss."""

    supports_padding = True

    def forward(self, *args: Tensor, **kwargs: Tensor) -> Tensor:
        self.auxiliary_loss = self.pool.template_features.square().sum()
        return super().forward(*args, **kwargs)


SIZES = {"in_channels": 3, "out_channels": 2, "num_templates": 2, "template_nodes": 5}
CONFIG = TFGWConfig(**SIZES, num_layers=2, width=4)
DEFAULT = config_from(TFGWConfig, {**RECIPES["default"], "dropout": 0.0, "num_layers": 2, "width": 4}, **SIZES)

VARIANTS = replace(CONFIG, activation=True, self_loops=True, single_dropout=True, free_diagonal=True)

NEW_MODELS: dict[str, Callable[[GraphDataset], nn.Module]] = {
    "own encoder": lambda data: TFGWModel(CONFIG, encoder=CentredEncoder(3)).init_templates(data),
    "auxiliary loss": lambda data: RegularisedModel(CONFIG).init_templates(data),
    "default recipe": lambda data: TFGWModel(DEFAULT).init_templates(data),
    "ensemble": lambda data: Ensemble(TFGWModel(DEFAULT).init_templates(data, seed=seed) for seed in range(3)),
    "authors' variants": lambda data: TFGWModel(VARIANTS).init_templates(data),
    "GIN": lambda data: GINModel(3, 2, num_layers=3, width=4),
    "MLP": lambda data: MLPModel(3, 2, dropout=0.0),
    "OT-GNN": lambda data: OTGNNModel(3, 2, num_templates=2, template_nodes=5),
}
"""Models that are recorded, besides the plain one."""


def with_default_recipe(config: TrainConfig) -> TrainConfig:
    """The same run, trained as the default recipe says."""
    names = ("weight_decay", "label_smoothing", "schedule", "fresh_statistics")
    return replace(config, **{name: RECIPES["default"][name] for name in names})


def sizes_replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the number of graphs of each batch that is replayed; -1 for one that does not fit."""
    sizes: list[int] = []
    replay = RecordedPass.replay

    def noted(self: RecordedPass, graphs: torch.Tensor) -> bool:
        fits = replay(self, graphs)
        sizes.append(len(graphs) if fits else -1)
        return fits

    monkeypatch.setattr(RecordedPass, "replay", noted)
    return sizes


def train(config: TrainConfig, *, graphs: int, validation: int, dropout: float = 0.0) -> tuple[TFGWModel, FitResult]:
    data = cycles_and_stars(graphs)
    model = small_model(data, layers=2, dropout=dropout)
    return model, fit(model, data, cycles_and_stars(validation, seed=1), config=config)


def train_new(name: str, config: TrainConfig, *, graphs: int, validation: int) -> tuple[nn.Module, FitResult]:
    """Train one of :data:`NEW_MODELS`; the same weights at every call."""
    parts = [cycles_and_stars(graphs), cycles_and_stars(validation, seed=1)]
    data, others = (single_nodes(part) for part in parts) if name == "MLP" else parts
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = NEW_MODELS[name](data)
    return model, fit(model, data, others, config=config)


def single_nodes(data: GraphDataset) -> GraphDataset:
    """Every graph as the only node that the MLP of the baselines takes."""
    no_edges = torch.zeros(2, 0, dtype=torch.int64)
    graphs = [Data(x=graph.x.sum(0, keepdim=True), edge_index=no_edges, y=graph.y) for graph in data]
    return GraphDataset.from_graphs(graphs, name="single nodes", classes=data.classes)


def held_after_trainings(config: TrainConfig, count: int) -> list[int]:
    """Bytes of the GPU that PyTorch cannot give back after each of some trainings."""
    held = []
    for _ in range(count):
        train(config, graphs=24, validation=13)
        gc.collect()
        torch.cuda.empty_cache()
        held.append(torch.cuda.memory_reserved())
    return held


def assert_same_training(one: tuple[nn.Module, FitResult], other: tuple[nn.Module, FitResult]) -> None:
    """To rounding, wherever the models are."""
    for record, expected in zip(one[1].records, other[1].records, strict=True):
        ours, theirs = ([value if value is not None else -1.0 for value in row] for row in (record, expected))
        assert ours == pytest.approx(theirs, rel=1e-7)
    assert one[1].kept == pytest.approx(other[1].kept)
    for name, tensor in other[0].state_dict().items():
        torch.testing.assert_close(one[0].state_dict()[name].cpu(), tensor.cpu(), rtol=1e-6, atol=1e-9, msg=name)

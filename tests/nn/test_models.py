from collections.abc import Callable
from dataclasses import fields
from inspect import signature

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN

from tfgw.nn import GINEncoder, GINModel, TFGWConfig, TFGWModel, TFGWPooling, TWPooling, project_after_step
from tfgw.nn.heads import prediction_head


def graphs(count: int = 6, channels: int = 3) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for number in range(count):
        nodes = 4 + number % 3
        path = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        x = torch.randn(nodes, channels, generator=generator)
        edge_index = torch.cat([path, path.flip(0)], 1)
        made.append(Data(x=x, edge_index=edge_index, y=torch.tensor([number % 2])))
    return made


def config(**changes: object) -> TFGWConfig:
    return TFGWConfig(**{"in_channels": 3, "out_channels": 2, "num_templates": 4, "template_nodes": 5, **changes})


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("made", [TFGWPooling, GINEncoder, prediction_head, TWPooling])
def test_layers_have_the_defaults_of_the_config(made: Callable[..., object]) -> None:
    defaults = {field.name: field.default for field in fields(TFGWConfig)}
    shared = {name: p.default for name, p in signature(made).parameters.items() if p.default is not p.empty}
    shared = {name: value for name, value in shared.items() if name in defaults}
    assert shared == {name: defaults[name] for name in shared} != {}


def test_tfgw_has_the_papers_parameter_count_on_ptc() -> None:
    ptc = TFGWConfig(in_channels=18, out_channels=2, num_templates=8, template_nodes=13, num_layers=2, width=16)
    assert count(TFGWModel(ptc)) == 25_099


def test_gin_has_the_papers_parameter_count_on_ptc() -> None:
    assert count(GINModel(18, 2, num_layers=4, width=16)) == 29_858


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_encoding_starts_with_the_raw_features(layers: int) -> None:
    batch = Batch.from_data_list(graphs())
    encoder = GINEncoder(3, width=7, num_layers=layers)
    encoded = encoder(batch.x, batch.edge_index)
    assert encoded.shape == (batch.num_nodes, encoder.out_channels) == (batch.num_nodes, 3 + 7 * layers)
    assert torch.equal(encoded[:, :3], batch.x)


@pytest.mark.parametrize("model", [TFGWModel(config()), GINModel(3, 2)])
def test_a_batch_gives_what_its_graphs_give_one_by_one(model: nn.Module) -> None:
    model.double().eval()
    alone = torch.cat([model(g.x.double(), g.edge_index) for g in graphs()])
    batch = Batch.from_data_list(graphs())
    assert torch.allclose(model(batch.x.double(), batch.edge_index, batch.batch), alone, atol=1e-12)


def test_embedding_is_the_distance_to_templates_taken_from_the_data() -> None:
    data = graphs()
    model = TFGWModel(config(num_layers=0)).double().init_templates(data)
    batch = Batch.from_data_list(data)
    distances = model.embed(batch.x.double(), batch.edge_index, batch.batch)
    assert distances.shape == (6, 4)
    # Templates are training graphs of 5 nodes: each such graph is at distance 0 from its own.
    of_size = torch.tensor([g.num_nodes == 5 for g in data])
    assert torch.all(distances[of_size].min(1).values < 1e-9)


def test_templates_take_over_the_weights_of_edges_and_nodes() -> None:
    data = graphs(12)  # of which four have the template's size
    for graph in data:
        graph.edge_weight = torch.full((graph.num_edges,), 0.3, dtype=torch.float64)
        graph.node_weights = torch.arange(1.0, graph.num_nodes + 1, dtype=torch.float64)
        graph.node_weights /= graph.node_weights.sum()
    model = TFGWModel(config(num_layers=0)).double().init_templates(data)
    assert set(model.pool.template_structure.flatten().tolist()) == {0, 0.3}
    assert torch.allclose(model.pool.template_weights, torch.arange(1.0, 6).double() / 15)


def test_templates_of_precomputed_structures() -> None:
    data = graphs(12)  # of which four have the template's size
    for graph in data:
        graph.structure = torch.arange(float(graph.num_nodes)).outer(torch.arange(float(graph.num_nodes))).flatten()
    model = TFGWModel(config(structure="precomputed")).init_templates(data)
    expected = torch.arange(5.0).outer(torch.arange(5.0))
    assert torch.equal(model.pool.template_structure, expected.expand(4, 5, 5))


def test_initialising_templates_leaves_the_encoder_as_it_is() -> None:
    model = TFGWModel(config())
    before = {key: tensor.clone() for key, tensor in model.encoder.state_dict().items()}
    model.init_templates(graphs())
    after = model.encoder.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_any_pyg_encoder_takes_the_gins_place() -> None:
    model = TFGWModel(config(), encoder=GCN(3, 6, num_layers=2)).init_templates(graphs())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    project_after_step(optimizer, model)
    batch = Batch.from_data_list(graphs())
    model(batch.x, batch.edge_index, batch.batch).square().sum().backward()
    optimizer.step()
    assert model.pool.in_channels == 6
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_shortest_paths_reach_the_pooling_whether_passed_or_computed() -> None:
    from tfgw.datasets import ShortestPaths

    model = TFGWModel(config(structure="shortest_path")).double().eval()
    data = [ShortestPaths()(g) for g in graphs()]
    batch = Batch.from_data_list(data)
    x = batch.x.double()
    computed = model(x, batch.edge_index, batch.batch)
    passed = model(x, batch.edge_index, batch.batch, structure=batch.structure.double())
    assert torch.equal(computed, passed)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"dropout": 1.0}, "dropout"),
        ({"out_channels": 0}, "out_channels"),
        ({"num_layers": -1}, "num_layers"),
        ({"width": 0}, "width"),
    ],
)
def test_a_wrong_size_is_named(wrong: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        TFGWModel(config(**wrong))

"""GIN and DropGIN: the paper's parameter counts, and what dropping nodes does."""

import pytest
import torch
from torch_geometric.data import Batch

from tests.baselines.small import awkward_graphs, labelled_graphs
from tfgw.baselines import GIN, DropGIN
from tfgw.baselines.drop_gin import DropGINModel
from tfgw.nn import GINModel

PTC_FEATURES, PTC_CLASSES = 18, 2


def test_parameters_of_table_3() -> None:
    gin = GINModel(PTC_FEATURES, PTC_CLASSES, num_layers=4, width=16)
    drop_gin = DropGINModel(PTC_FEATURES, PTC_CLASSES, num_layers=4, width=32)
    assert sum(p.numel() for p in gin.parameters()) == 29_858
    assert sum(p.numel() for p in drop_gin.parameters()) == 44_098


def test_defaults_are_those_of_table_3() -> None:
    graphs, names = labelled_graphs(8)
    for graph in graphs:
        graph.x = torch.nn.functional.pad(graph.x, (0, PTC_FEATURES - 3))
    settings = {"recipe": "paper", "epochs": 1, "accelerator": "cpu"}
    assert GIN(**settings).fit(graphs, names).num_parameters_ == 29_858
    assert DropGIN(**settings).fit(graphs, names).num_parameters_ == 44_098


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_without_drops_drop_gin_is_gin(training: bool, self_loops: bool) -> None:
    graphs = Batch.from_data_list(awkward_graphs())
    sizes = {"num_layers": 3, "width": 8, "self_loops": self_loops}
    gin = GINModel(3, 2, **sizes).double().train(training)
    model = DropGINModel(3, 2, **sizes, num_runs=5, drop_probability=0.0).double().train(training)
    model.load_state_dict(gin.state_dict())
    inputs = (graphs.x, graphs.edge_index, graphs.batch)
    torch.testing.assert_close(model(*inputs), gin(*inputs))


def test_gradients_of_the_sparse_product() -> None:
    graphs = Batch.from_data_list(awkward_graphs())
    gin = GINModel(3, 2, num_layers=3, width=8).double()
    model = DropGINModel(3, 2, num_layers=3, width=8, num_runs=1, drop_probability=0.0).double()
    model.load_state_dict(gin.state_dict())
    for network in (gin, model):
        network(graphs.x, graphs.edge_index, graphs.batch).square().sum().backward()
    for expected, actual in zip(gin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(actual.grad, expected.grad)


def test_share_of_dropped_nodes_and_default_settings() -> None:
    graphs, names = labelled_graphs(24)
    mean_nodes = sum(graph.num_nodes for graph in graphs) / 24
    model = DropGIN(n_estimators=1, epochs=1, accelerator="cpu", random_state=0).fit(graphs, names).model_
    assert model.num_runs == round(mean_nodes)
    assert model.drop_probability == 2 / mean_nodes
    model.num_runs = 4000
    kept = model._is_kept(torch.zeros(7, 3))
    assert kept.shape == (7, 4000)
    torch.testing.assert_close(kept.mean(1), torch.full((7,), 1 - 2 / mean_nodes), atol=0.04, rtol=0)


def test_errors() -> None:
    graphs, names = labelled_graphs(8)
    with pytest.raises(ValueError, match="num_runs: must be at least 1, got 0"):
        DropGIN(num_runs=0).fit(graphs, names)
    with pytest.raises(ValueError, match="drop_probability: must be at least 0 and less than 1"):
        DropGIN(drop_probability=1.0).fit(graphs, names)
    with pytest.raises(ValueError, match="width: must be at least 1"):
        GIN(width=0).fit(graphs, names)

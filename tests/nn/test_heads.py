from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.test_padding import rows_of
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.nn.batch_norm import GraphVectorNorm
from tfgw.nn.heads import prediction_head
from tfgw.nn.padding import use_padding
from tfgw.nn.readout import mean_over_graphs, sum_over_graphs

BATCH = torch.tensor([0, 0, 0, 2, 2])


def test_layers_of_a_head() -> None:
    sizes = {
        layers: [(m.in_features, m.out_features) for m in prediction_head(7, 3, hidden_layers=layers).modules()
                 if isinstance(m, nn.Linear)]
        for layers in (0, 1, 2)
    }  # fmt: skip
    assert sizes == {0: [(7, 3)], 1: [(7, 128), (128, 3)], 2: [(7, 128), (128, 128), (128, 3)]}


def test_places_of_dropout() -> None:
    """After every hidden layer, or once, before the second one."""

    def kinds(**options: Any) -> list[str]:
        return [type(module).__name__ for module in prediction_head(7, 3, dropout=0.2, **options)]

    hidden, dropout = ["Linear", "ReLU"], ["Dropout"]
    assert kinds() == [*hidden, *dropout, *hidden, *dropout, "Linear"]
    assert kinds(single_dropout=True) == [*hidden, *dropout, *hidden, "Linear"]
    assert kinds(single_dropout=True, hidden_layers=1) == kinds(hidden_layers=1) == [*hidden, *dropout, "Linear"]
    head = prediction_head(7, 3, dropout=0.2, single_dropout=True)
    assert [module.p for module in head if isinstance(module, nn.Dropout)] == [0.2]


@pytest.mark.parametrize("wrong", [{"hidden_layers": -1}, {"dropout": 1.0}])
def test_wrong_settings_are_named(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        prediction_head(7, 3, **wrong)


def test_scales_of_the_vector_do_not_matter_to_a_head_that_normalises() -> None:
    torch.manual_seed(0)
    head, x = prediction_head(4, 2, normalize=True).double(), torch.randn(9, 4).double()
    scale, shift = torch.tensor([1e3, 0.3, 5.0, 1.0]).double(), torch.tensor([3.0, 0.0, -1e4, 2.0]).double()
    torch.testing.assert_close(head(scale * x + shift), head(x), rtol=1e-3, atol=1e-3)


def test_vectors_are_normalised_over_graphs_whatever_the_nodes_are_padded_to() -> None:
    torch.manual_seed(1)
    norm, x = GraphVectorNorm(3).double(), torch.randn(5, 3).double()
    with use_padding(rows_of(11, 4)):
        found = norm(x)
    torch.testing.assert_close(found, (x - x.mean(0)) / (x.var(0, correction=0) + norm.eps).sqrt())
    torch.testing.assert_close(norm.running_mean, 0.1 * x.mean(0))
    assert not list(norm.parameters())


def test_a_single_graph_is_normalised_by_the_running_statistics() -> None:
    norm = GraphVectorNorm(2).double()
    norm.running_mean.copy_(torch.tensor([1.0, 2.0]))
    norm.running_var.copy_(torch.tensor([4.0, 9.0]))
    for module in (norm.train(), norm.eval()):
        found = module(torch.tensor([[5.0, 8.0]]).double())
        assert found.tolist() == [pytest.approx([2.0, 2.0], rel=1e-5)]
    assert norm.running_mean.tolist() == [1.0, 2.0]


def test_means_over_graphs() -> None:
    x = torch.arange(10.0).reshape(5, 2)
    expected = torch.tensor([[2.0, 3.0], [0.0, 0.0], [7.0, 8.0]])  # the second graph has no nodes
    assert mean_over_graphs(x, BATCH, 3).equal(expected)
    assert mean_over_graphs(x).equal(x.mean(0, keepdim=True))
    padded, places = torch.cat([x, torch.full((2, 2), 99.0)]), torch.cat([BATCH, torch.tensor([3, 3])])
    with use_padding(rows_of(5, 2)):
        assert mean_over_graphs(padded, places, 3).equal(expected)
        assert sum_over_graphs(padded, places, 3).equal(torch.tensor([[6.0, 9.0], [0.0, 0.0], [14.0, 16.0]]))


@pytest.mark.parametrize(
    ("readout", "over"), [("distances+sum", sum_over_graphs), ("distances+mean", mean_over_graphs)]
)
def test_what_enters_the_head(readout: str, over) -> None:
    torch.manual_seed(2)
    sizes = {"in_channels": 3, "out_channels": 2, "num_templates": 4, "template_nodes": 3, "num_layers": 1, "width": 5}
    model = TFGWModel(TFGWConfig(**sizes, readout=readout, square_root=True)).double().eval()
    x, edge_index = torch.randn(5, 3).double(), torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    batch = torch.tensor([0, 0, 0, 1, 1])
    found = model.readout(x, edge_index, batch, batch_size=2)
    distances = model.embed(x, edge_index, batch, batch_size=2)
    torch.testing.assert_close(found[:, :4], (distances + 1e-6).sqrt())
    torch.testing.assert_close(found[:, 4:], over(model.encoder(x, edge_index), batch, 2))
    torch.testing.assert_close(model(x, edge_index, batch, batch_size=2), model.head(found))


def test_an_unknown_readout_is_refused() -> None:
    with pytest.raises(ValueError, match="readout: must be one of distances, distances"):
        TFGWConfig(in_channels=3, out_channels=2, num_templates=4, template_nodes=3, readout="sum")


def test_square_roots_have_gradients_at_distance_0() -> None:
    """A template that equals its graph."""
    config = TFGWConfig(
        in_channels=1, out_channels=2, num_templates=1, template_nodes=3, num_layers=0, square_root=True
    )
    model = TFGWModel(config).double()
    path = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).double()
    x = torch.tensor([[1.0], [2.0], [4.0]]).double()
    model.pool.set_templates(path[None], x[None])
    model(x, path.nonzero().T).sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())

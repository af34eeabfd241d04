"""A GIN layer is PyTorch Geometric's, to the last bit."""

import pytest
import torch
from torch import nn
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GINConv

from tfgw.nn.encoders import GINEncoder, GINLayer

EDGES = torch.randint(0, 23, (2, 71), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_layer_computes_what_ginconv_does(dtype: torch.dtype) -> None:
    network = nn.Linear(5, 3).to(dtype)
    results = []
    for layer in (GINLayer(network), GINConv(network)):
        torch.manual_seed(0)
        x = torch.randn(23, 5, dtype=dtype).requires_grad_()
        y = layer.to(dtype)(x, EDGES)
        y.square().sum().backward()
        results.append([y, x.grad])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(*results, strict=True))
    assert list(GINLayer(network).state_dict()) == list(GINConv(network).state_dict())


def test_self_loops_add_the_features_of_the_node_itself_once_more() -> None:
    x = torch.randn(23, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain, looped = GINLayer(nn.Identity()), GINLayer(nn.Identity(), self_loops=True)
    torch.testing.assert_close(looped(x, EDGES) - plain(x, EDGES), x)
    loops = torch.arange(23).repeat(2, 1)
    torch.testing.assert_close(looped(x, EDGES), plain(x, torch.cat([EDGES, loops], dim=1)))
    torch.testing.assert_close(looped(x, EDGES), GINConv.forward(looped, x, EDGES))  # what explainers call


def test_every_layer_of_an_encoder_has_self_loops_or_none() -> None:
    loops = {
        wanted: [layer.self_loops for layer in GINEncoder(5, num_layers=3, self_loops=wanted).convs]
        for wanted in (False, True)
    }
    assert loops == {False: [False] * 3, True: [True] * 3}
    assert [layer.self_loops for layer in GINEncoder(5).convs] == [False, False]


@pytest.mark.parametrize("node", [-1, 23])
@pytest.mark.parametrize("end", [0, 1])
def test_edges_that_point_nowhere_are_refused(node: int, end: int) -> None:
    edges = EDGES.clone()
    edges[end, 0] = node
    with pytest.raises((IndexError, RuntimeError, ValueError)) as expected:
        GINConv(nn.Identity())(torch.ones(23, 5), edges)
    with pytest.raises(expected.type) as error:
        GINLayer(nn.Identity())(torch.ones(23, 5), edges)
    assert str(error.value) == str(expected.value)


def test_explainers_weigh_the_messages() -> None:
    model = GINEncoder(5, width=4).eval()
    explainer = Explainer(
        model,
        algorithm=GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(torch.randn(23, 5), EDGES)
    assert bool(explanation.edge_mask.any())

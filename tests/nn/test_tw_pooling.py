import ot as pot
import pytest
import torch
from scipy.spatial.distance import cdist

from tests.nn.graphs import CHANNELS, SIZES, random_batch
from tfgw.nn import TWPooling, project_after_step

K, M = 3, 8


def make_layer(seed: int = 0, **options: object) -> TWPooling:
    torch.manual_seed(seed)
    return TWPooling(CHANNELS, K, M, **options).double()


def random_weights(seed: int) -> torch.Tensor:
    weights = torch.rand(K, M, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights[1, 2] = 0
    return weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("uniform", [True, False])
def test_distances_are_pots(uniform: bool) -> None:
    layer, data = make_layer(), random_batch()
    if not uniform:
        layer.set_templates(layer.template_features.detach().clone(), random_weights(0))
    found = layer(data.x, data.batch)
    assert found.shape == (len(SIZES), K)
    for b, graph in enumerate(data.to_data_list()):
        for k in range(K):
            cost = cdist(graph.x.numpy(), layer.template_features[k].detach().numpy(), "sqeuclidean")
            expected = pot.emd2(pot.unif(SIZES[b]), layer.template_weights[k].detach().numpy(), cost)
            assert float(found[b, k].detach()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("options", [{}, {"learn_templates": False, "num_threads": 1}, {"learn_weights": False}])
def test_repr_and_state_rebuild_the_layer(options: dict[str, object]) -> None:
    layer, data = make_layer(**options), random_batch()
    again = eval(repr(layer), {"TWPooling": TWPooling}).double()
    assert repr(again) == repr(layer)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(data.x, data.batch), layer(data.x, data.batch))


def test_number_of_parameters() -> None:
    assert sum(p.numel() for p in make_layer().parameters()) == K * M * CHANNELS + K * M
    assert sum(p.numel() for p in make_layer(learn_weights=False).parameters()) == K * M * CHANNELS
    assert sum(p.numel() for p in make_layer(learn_templates=False).parameters()) == K * M


def test_set_templates_round_trip_and_errors() -> None:
    layer = make_layer()
    features = torch.randn(K, M, CHANNELS, dtype=torch.float64)
    layer.set_templates(features, random_weights(0))
    assert torch.equal(layer.template_features, features)
    assert torch.equal(layer.template_weights, random_weights(0))
    assert layer.live_nodes.tolist() == [M, M - 1, M]
    layer.set_templates(features)
    assert layer.template_weights.tolist() == [[1 / M] * M] * K
    with pytest.raises(ValueError, match="features: expected shape"):
        layer.set_templates(features[:, 1:])
    with pytest.raises(ValueError, match="weights: must be non-negative and sum to 1 for each template"):
        layer.set_templates(features, 2 * random_weights(0))


def test_empty_graphs() -> None:
    layer, data = make_layer(), random_batch()
    found = layer(data.x, data.batch, batch_size=len(SIZES) + 1)
    assert torch.equal(found[:-1], layer(data.x, data.batch))
    assert found[-1].tolist() == [0.0] * K
    with pytest.raises(ValueError, match="batch: graph 1 has no nodes"):
        layer(data.x, data.batch + (data.batch >= 1))


def test_single_precision_and_reset() -> None:
    layer, data = make_layer().float(), random_batch(dtype=torch.float32)
    assert layer(data.x, data.batch).dtype == torch.float32
    before = layer.template_features.clone()
    layer.reset_parameters()
    assert not torch.equal(layer.template_features, before)
    assert layer.template_weights.tolist() == torch.full((K, M), 1 / M).tolist()


def test_weights_stay_on_the_simplex() -> None:
    layer, data = make_layer(), random_batch()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    project_after_step(optimizer, layer)
    for _ in range(3):
        optimizer.zero_grad()
        layer(data.x, data.batch).sum().backward()
        optimizer.step()
        assert layer.template_weights.min().item() >= 0
        torch.testing.assert_close(layer.template_weights.sum(-1), torch.ones(K, dtype=torch.float64))


def test_training_moves_the_cloud_to_the_points() -> None:
    data = random_batch(sizes=(M,))
    layer = TWPooling(CHANNELS, 1, M, learn_weights=False).double()
    layer.set_templates(data.x.roll(1, 0)[None] + 0.3)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        loss = layer(data.x).sum()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3


def test_order_of_the_points_does_not_matter() -> None:
    layer, data = make_layer(), random_batch(sizes=(9,))
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(data.x[order]), layer(data.x), rtol=1e-12, atol=0)

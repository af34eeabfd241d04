"""Native code maps what PyTorch maps, every row by itself, and leaves to PyTorch whatever it does not know."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tfgw.nn import Ensemble, GINEncoder, GINModel
from tfgw.nn.batch_norm import BatchNorm, NormSequential
from tfgw.nn.encoders import GINLayer
from tfgw.nn.heads import prediction_head
from tfgw.nn.linear import Linear, Perceptron

EDGES = torch.randint(0, 23, (2, 71), generator=torch.Generator().manual_seed(0))
PRECISION = {torch.float64: 1e-13, torch.float32: 1e-5}


def assert_agree(found: Tensor, expected: Tensor) -> None:
    """Equal up to rounding, on the scale of the largest number."""
    error = (found - expected.detach()).abs().max()
    assert error <= PRECISION[found.dtype] * expected.abs().max()


def features(dtype: torch.dtype = torch.float64, rows: int = 23, columns: int = 5) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(1)).to(dtype)


def trained(network: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """In evaluation mode, with parameters and statistics of every sign."""
    generator = torch.Generator().manual_seed(2)
    for name, tensor in network.to(dtype).state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
            if name.endswith("running_var"):
                tensor.abs_()
    return network.eval()


def encoder(dtype: torch.dtype = torch.float64, **options: Any) -> GINEncoder:
    network = trained(GINEncoder(5, **{"width": 6, "num_layers": 3, "activation": True, **options}), dtype)
    assert isinstance(network, GINEncoder)
    return network


@pytest.fixture
def only_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch must not be called for a layer."""

    def refuse(*_: object) -> None:
        raise AssertionError("computed by PyTorch")

    for kind in (GINLayer, BatchNorm, nn.ReLU):
        monkeypatch.setattr(kind, "forward", refuse)
    monkeypatch.setattr(NormSequential, "_in_pytorch", refuse)
    monkeypatch.setattr(Perceptron, "_in_pytorch", refuse)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [{"self_loops": True}, {"activation": False}, {"num_layers": 0}, {"width": 17}])
def test_nodes_are_encoded_as_by_pytorch(dtype: torch.dtype, options: dict[str, Any]) -> None:
    network, x = encoder(dtype, **options), features(dtype)
    expected = network(x, EDGES)
    with torch.no_grad():
        found = network(x, EDGES)
    assert found.dtype == dtype
    assert_agree(found, expected)
    assert torch.equal(found[:, :5], x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalize", [False, True])
def test_heads_are_computed_as_by_pytorch(dtype: torch.dtype, normalize: bool) -> None:
    head = trained(prediction_head(5, 3, dropout=0.5, hidden_layers=2, normalize=normalize), dtype)
    expected = head(features(dtype)).detach()
    with torch.no_grad():
        assert_agree(head(features(dtype)), expected)


@pytest.mark.usefixtures("only_native")
def test_an_ensemble_needs_no_layer_of_pytorch() -> None:
    members = [trained(GINModel(5, 2, width=6, activation=True, normalize=True)) for _ in range(3)]
    with torch.no_grad():
        assert Ensemble(members).eval()(features(), EDGES).shape == (1, 2)


@pytest.mark.usefixtures("only_native")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_graph_has_the_same_bits_wherever_it_is_in_a_batch(dtype: torch.dtype) -> None:
    network, x = encoder(dtype), features(dtype)
    with torch.no_grad():
        alone = network(x, EDGES)
        for before in (1, 2, 41, 64):
            batch = torch.cat([features(dtype, before), x, x])
            found = network(batch, torch.cat([EDGES + before, EDGES + before + 23], dim=1))
            assert torch.equal(found[before : before + 23], alone)
            assert torch.equal(found[before + 23 :], alone)


def test_layers_one_by_one_give_the_bits_of_the_encoder() -> None:
    network, x = encoder(self_loops=True, activation=False), features()
    with torch.no_grad():
        conv, norm = network.convs[0], NormSequential(network.norms[0]).eval()
        assert torch.equal(network(x, EDGES)[:, 5:11], norm(conv(x, EDGES)))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_values_that_are_not_finite_are_kept(value: float) -> None:
    x = features()
    x[4, 2] = value
    network = Perceptron(nn.ReLU(), Linear(5, 3)).double().eval()
    expected = network(x).detach()
    with torch.no_grad():
        found = network(x)
    torch.testing.assert_close(found, expected, equal_nan=True)
    assert not found[4].isfinite().any()


def test_graphs_without_nodes_or_edges() -> None:
    network, x = encoder(), features()
    none = torch.empty(2, 0, dtype=torch.int64)
    expected = network(x, none).detach()
    with torch.no_grad():
        torch.testing.assert_close(network(x, none), expected)
        assert network(x[:0], none).shape == (0, 5 + 3 * 6)


@pytest.mark.usefixtures("only_native")
def test_memory_need_not_be_contiguous() -> None:
    network, x = encoder(), features()
    with torch.no_grad():
        found = network(x.T.contiguous().T, EDGES.T.contiguous().T)
        assert torch.equal(found, network(x, EDGES))


CHANGES: dict[str, Callable[[GINEncoder], object]] = {
    "in place": lambda network: network.convs[0].nn[0].weight.data.mul_(2),
    "statistics": lambda network: network.norms[1][0].running_mean.add_(1),
    "new parameter": lambda network: setattr(network.convs[1].nn[3], "bias", nn.Parameter(torch.ones(6).double())),
    "new module": lambda network: network.norms[0].insert(0, Linear(6, 6).double().eval()),
    "loaded": lambda network: network.load_state_dict(
        {name: tensor.clone() + 1 for name, tensor in network.state_dict().items()}, assign=True
    ),
    "precision": lambda network: network.float().double(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_take_effect_at_once(change: Callable[[GINEncoder], object]) -> None:
    network, x = encoder(), features()
    with torch.no_grad():
        before = network(x, EDGES)
        change(network)
        found = network(x, EDGES)
    assert not torch.equal(found, before)
    assert_agree(found, network(x, EDGES))


def test_hooks_see_the_layers() -> None:
    network, x = encoder(), features()
    seen: list[Tensor] = []
    with torch.no_grad():
        expected = network(x, EDGES)
        for module in (network.convs[1], network.convs[1].nn, network.convs[1].nn[2], network.norms[1][0]):
            handle = module.register_forward_hook(lambda _, __, output: seen.append(output))
            assert_agree(network(x, EDGES), expected)
            handle.remove()
        network.convs[1].nn[3].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        network(x, EDGES)
    assert len(seen) == 5


class Doubling(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


UNKNOWN: dict[str, Callable[[GINEncoder], object]] = {
    "subclass": lambda network: network.norms[0].append(Doubling(6, 6).double().eval()),
    "other module": lambda network: network.norms[0].append(nn.Tanh()),
    "part in training mode": lambda network: network.norms[2][0].train(),
    "layout of a weight": lambda network: setattr(
        network.convs[2].nn[0], "weight", nn.Parameter(network.convs[2].nn[0].weight.detach().T.contiguous().T)
    ),
}


@pytest.mark.parametrize("change", UNKNOWN.values(), ids=UNKNOWN)
def test_what_native_code_does_not_know_is_left_to_pytorch(change: Callable[[GINEncoder], object]) -> None:
    network, x = encoder(), features()
    change(network)
    network.double()
    expected = copy.deepcopy(network)(x, EDGES).detach()
    with torch.no_grad():
        assert_agree(network(x, EDGES), expected)


def test_other_precisions_are_left_to_pytorch() -> None:
    network, x = encoder(torch.bfloat16), features(torch.bfloat16)
    with torch.no_grad():
        assert network(x, EDGES).dtype == torch.bfloat16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert Linear(5, 3).eval()(features(torch.float32)).dtype == torch.bfloat16


def test_gradients_are_those_of_pytorch() -> None:
    network, x = encoder(), features().requires_grad_()
    network(x, EDGES).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("node", [-1, 23])
def test_errors_are_those_of_pytorch(node: int) -> None:
    edges = EDGES.clone()
    edges[0, 3] = node
    messages = []
    for with_gradients in (True, False):
        with torch.set_grad_enabled(with_gradients), pytest.raises((IndexError, RuntimeError, ValueError)) as error:
            encoder()(features(), edges)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    with torch.no_grad(), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        encoder()(features(columns=4), EDGES)

"""The kernels of the layers of networks, here on a CPU: compiled by g++, each thread a fibre."""

import ctypes

import pytest
import torch
from torch import Tensor, nn

from tests.nn.cuda.emulated_layers import emulate, kernels
from tests.ot.cuda.emulation import COMPILER
from tfgw.nn.batch_norm import BatchNorm, NormSequential
from tfgw.nn.cuda import gather_kernel, launching, linear_kernel, neighbour_kernel, norm_kernel
from tfgw.nn.cuda.linear_kernel import linear_gradients
from tfgw.nn.cuda.norm_kernel import FusedNorm, Norm, Running
from tfgw.nn.encoders import GINLayer
from tfgw.nn.linear import Linear
from tfgw.nn.padding import Rows, use_padding

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return emulate(monkeypatch)


def rows_of(nodes: int, padding: int, dtype: torch.dtype = torch.float64) -> Rows:
    return Rows.where((torch.arange(nodes + padding).unsqueeze(1) < nodes).to(dtype))


def random_norm(channels: int, dtype: torch.dtype = torch.float64) -> BatchNorm:
    norm = BatchNorm(channels).to(dtype)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def test_python_and_the_kernels_agree_on_sizes() -> None:
    assert kernels().norm_threads() == norm_kernel.THREADS
    assert kernels().norm_channels() == norm_kernel.CHANNELS
    assert kernels().norm_bytes() == ctypes.sizeof(Norm)
    assert kernels().linear_threads() == linear_kernel.THREADS
    assert kernels().linear_tile() == linear_kernel.TILE
    assert kernels().linear_bytes() == ctypes.sizeof(linear_kernel.Linear)
    assert kernels().padded_threads() == gather_kernel.THREADS
    assert kernels().padded_graphs() == gather_kernel.MAX_GRAPHS
    assert kernels().padded_bytes() == ctypes.sizeof(gather_kernel.Padded)
    assert kernels().neighbour_threads() == neighbour_kernel.THREADS
    assert kernels().neighbour_bytes() == ctypes.sizeof(neighbour_kernel.Neighbours)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("nodes", "padding", "channels"), [(301, 5, 7), (2, 3, 4), (1, 2, 9)])
def test_results_are_those_of_pytorch(
    launched: list[str], relu: bool, dtype: torch.dtype, tolerance: float, nodes: int, padding: int, channels: int
) -> None:
    """Those of the formula on the nodes alone: outputs, gradients and running statistics."""
    torch.manual_seed(0)
    ours, theirs = random_norm(channels, dtype), BatchNorm(channels).double()
    theirs.load_state_dict(ours.state_dict())
    x, up = 3 + torch.randn(nodes + padding, channels).to(dtype), torch.randn(nodes + padding, channels).to(dtype)
    x.requires_grad_()
    found = ours.normalize_nodes(x, rows_of(nodes, padding, dtype), relu=relu)
    found.backward(torch.where(torch.arange(nodes + padding).unsqueeze(1) < nodes, up, 0))
    wide = x.detach()[:nodes].double().requires_grad_()
    centred = wide - wide.mean(0)
    variance = centred.square().mean(0)
    expected = centred * (variance + theirs.eps).rsqrt() * theirs.weight + theirs.bias
    expected = expected.relu() if relu else expected
    expected.backward(up[:nodes].double())

    def same(one: Tensor | None, other: Tensor | None) -> None:
        assert one is not None
        assert other is not None
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance * 10)

    same(found[:nodes], expected)
    assert x.grad is not None
    same(x.grad[:nodes], wide.grad)
    assert not x.grad[nodes:].any()
    of_padding = ours.bias.relu() if relu else ours.bias
    assert torch.equal(found[nodes:], of_padding.expand(padding, channels))
    for name in ("weight", "bias"):
        same(getattr(ours, name).grad, getattr(theirs, name).grad)
    same(ours.running_mean, 0.1 * wide.mean(0))
    same(ours.running_var, 0.9 + 0.1 * (variance * nodes / (nodes - 1) if nodes > 1 else torch.ones(channels).double()))
    assert ours.num_batches_tracked == 1
    kind = str(dtype).removeprefix("torch.")
    assert launched == [f"tfgw_norm_{kind}", f"tfgw_norm_backward_{kind}"]


@pytest.mark.parametrize("relu", [False, True])
def test_gradients(launched: list[str], relu: bool) -> None:
    torch.manual_seed(1)
    rows = rows_of(6, 2)

    def normalised(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        running = Running(torch.zeros(5).double(), torch.ones(5).double(), torch.tensor(0), 0.1)
        return FusedNorm.apply(x, rows.number, weight, bias, running, 1e-5, relu)[:6]

    inputs = (torch.randn(8, 5), torch.randn(5), torch.randn(5))
    assert torch.autograd.gradcheck(normalised, [t.double().requires_grad_() for t in inputs])


def test_a_gradient_may_be_part_of_a_wider_matrix(launched: list[str]) -> None:
    torch.manual_seed(2)
    norm, rows, wide = random_norm(3), rows_of(7, 2), torch.randn(9, 11).double()
    grads = []
    for up in (wide[:, 4:7], wide[:, 4:7].contiguous(), wide[:, 4:7].T.contiguous().T):
        x = torch.linspace(-1, 2, 27).double().view(9, 3).requires_grad_()
        norm.normalize_nodes(x, rows, relu=True).backward(up)
        grads.append(x.grad)
    assert torch.equal(grads[0], grads[1])
    assert torch.equal(grads[0], grads[2])


def test_results_do_not_change_from_run_to_run(launched: list[str]) -> None:
    """Though threads run in another order."""
    torch.manual_seed(3)
    norm, rows, x = random_norm(5), rows_of(400, 12), torch.randn(412, 5).double()
    found = [norm.normalize_nodes(x, rows) for _ in range(2)]
    assert torch.equal(*found)
    for of_layer in zip(*(linear_gradients(x, x[:, :3]) for _ in range(2)), strict=True):
        assert torch.equal(*of_layer)


def test_padding_does_not_grow_where_nodes_are_alike(launched: list[str]) -> None:
    norm, x = BatchNorm(2), torch.cat([torch.ones(5, 2), torch.full((3, 2), 1e30)])
    with use_padding(rows_of(5, 3, torch.float32)):
        found = norm(norm(x))
    assert torch.equal(found, torch.zeros(8, 2))


@pytest.mark.parametrize(("dtype", "noise"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_a_constant_channel_is_set_to_its_bias(launched: list[str], dtype: torch.dtype, noise: float) -> None:
    torch.manual_seed(4)
    norm, x = random_norm(3, dtype), torch.randn(12, 3).to(dtype)
    x[:, 1] = -0.25 + noise * x[:, 1]
    x.requires_grad_()
    found = norm.normalize_nodes(x, rows_of(7, 5, dtype))
    found.backward(torch.randn(12, 3).to(dtype))
    assert torch.equal(found[:, 1], norm.bias[1].expand(12))
    assert x.grad is not None
    assert (x.grad[:7] == 0).all(0).tolist() == [False, True, False]
    assert (norm.weight.grad == 0).tolist() == [False, True, False]
    assert (norm.running_var == 1).tolist() == [False, True, False]


def test_a_relu_is_part_of_the_norm_before_it(launched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(4)
    modules = NormSequential(
        nn.Linear(3, 5), BatchNorm(5), nn.ReLU(), BatchNorm(5), nn.ReLU(), nn.Linear(5, 2)
    ).double()
    x = torch.randn(11, 3).double()
    with use_padding(rows_of(9, 2)):
        found = modules(x)
        assert launched == ["tfgw_norm_float64"] * 2
        monkeypatch.setattr(launching, "is_supported", lambda x: False)
        expected = modules(x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(modules(x[:9]), expected[:9])
    assert len(launched) == 2


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-6)])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(531, 17, 9), (300, 8, 5), (7, 3, 21), (1, 1, 1)])
def test_gradients_of_a_linear_layer(
    launched: list[str], dtype: torch.dtype, tolerance: float, rows: int, inputs: int, outputs: int
) -> None:
    """More and fewer rows than the loads of a block in flight; sizes that fill tiles and that do not."""
    torch.manual_seed(5)
    x, grad = torch.randn(rows, inputs).to(dtype), torch.randn(rows, outputs).to(dtype)
    weight, bias = linear_gradients(x, grad)
    torch.testing.assert_close(weight, grad.T @ x, rtol=tolerance, atol=30 * tolerance)
    torch.testing.assert_close(bias, grad.sum(0), rtol=tolerance, atol=30 * tolerance)
    assert launched == [f"tfgw_linear_gradient_{str(dtype).removeprefix('torch.')}"]


def test_gradients_of_parts_of_wider_matrices(launched: list[str]) -> None:
    torch.manual_seed(7)
    wide, grad = torch.randn(40, 30).double(), torch.randn(40, 6).double()
    for x in (wide[:, 2:13], wide.T.contiguous().T[:, 2:13]):
        for up in (grad[:, 1:5], grad.T.contiguous().T[:, 1:5]):
            found = linear_gradients(x, up)
            torch.testing.assert_close(found[0], up.T @ x)
            torch.testing.assert_close(found[1], up.sum(0))


def test_layers_with_many_weights_use_a_matrix_product(launched: list[str]) -> None:
    x, grad = torch.ones(3, 300), torch.ones(3, 257)
    weight, bias = linear_gradients(x, grad)
    assert weight.shape == (257, 300)
    assert (weight == 3).all()
    assert (bias == 3).all()
    assert not launched


def test_a_linear_layer_of_a_padded_batch(launched: list[str]) -> None:
    """The result is the same, bit for bit, and so are gradients to rounding."""
    torch.manual_seed(6)
    layer, x, up = Linear(3, 5).double(), torch.randn(8, 3).double(), torch.randn(8, 5).double()

    def run() -> list[Tensor]:
        layer.zero_grad()
        given = x.clone().requires_grad_()
        out = layer(given)
        out.backward(up)
        return [out, *(t.grad.clone() for t in (given, layer.weight, layer.bias) if t.grad is not None)]

    expected = run()
    assert not launched
    with use_padding(rows_of(6, 2)):
        found = run()
        layer(x).sum().backward()  # the features of the first layer need no gradient
    assert torch.equal(found[0], expected[0])
    assert len(found) == 4
    torch.testing.assert_close(found, expected)
    assert launched == ["tfgw_linear_gradient_float64"] * 2


@pytest.mark.parametrize("change", [{"training": False}, {"momentum": None}, {"affine": False}])
def test_other_norms_have_no_kernel(launched: list[str], change: dict[str, object]) -> None:
    norm = BatchNorm(3)
    assert norm.has_kernel(torch.zeros(2, 3))
    vars(norm).update(change)
    assert not norm.has_kernel(torch.zeros(2, 3))
    assert not BatchNorm(3).double().has_kernel(torch.zeros(2, 3))


def undirected(nodes: int, edges: int) -> Tensor:
    """Random edges in both directions, sorted; some of them twice."""
    ends = torch.randint(nodes, (2, edges))
    both = torch.cat([ends, ends.flip(0)], dim=1)
    return both[:, (both[0] * nodes + both[1]).argsort()]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("nodes", "edges", "channels"), [(211, 1030, 33), (5, 40, 3), (9, 0, 2), (70, 35, 1)])
def test_sums_over_neighbours(
    launched: list[str], dtype: torch.dtype, tolerance: float, nodes: int, edges: int, channels: int
) -> None:
    """Many neighbours, none at all, and nodes without neighbours at the end."""
    torch.manual_seed(8)
    edge_index, wide = undirected(nodes, edges), torch.randn(nodes + 4, channels + 2).to(dtype)
    x = wide[:, 1:-1].detach().requires_grad_()
    found = neighbour_kernel.NeighbourSums.apply(x, edge_index, 2.0)
    expected = (2 * x.double()).index_add(0, edge_index[1], x.double()[edge_index[0]])
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=30 * tolerance)
    up = torch.randn(nodes + 4, channels).to(dtype)
    gradients = (torch.autograd.grad(out, x, up.to(out))[0].double() for out in (found, expected))
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=30 * tolerance)
    assert launched == [f"tfgw_neighbour_sums_{str(dtype).removeprefix('torch.')}"] * 2


def test_gradients_of_sums_over_neighbours(launched: list[str]) -> None:
    torch.manual_seed(9)
    edge_index, x = undirected(6, 7), torch.randn(6, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: neighbour_kernel.NeighbourSums.apply(x, edge_index, 1.0), x)


@pytest.mark.parametrize("self_loops", [False, True])
def test_gin_layers_use_the_links_of_a_padded_batch(launched: list[str], self_loops: bool) -> None:
    torch.manual_seed(10)
    layer = GINLayer(nn.Linear(3, 5), self_loops=self_loops).double()
    edge_index, x = undirected(7, 11), torch.randn(9, 3).double()
    expected = layer(x, edge_index)
    with use_padding(rows_of(7, 2)._replace(links=edge_index)):
        assert not launched
        torch.testing.assert_close(layer(x, edge_index), expected)
        assert launched == ["tfgw_neighbour_sums_float64"]
        torch.testing.assert_close(layer(x, edge_index.clone()), expected)  # perhaps other edges
    with use_padding(rows_of(7, 2)):
        layer(x, edge_index)
    assert len(launched) == 1

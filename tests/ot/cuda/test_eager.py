"""Eager calls on a GPU, which go past the operators: here with emulated kernels, on tensors of the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.ot.cuda.emulation import EmulatedGpu, emulated_for_eager_calls
from tests.ot.problems import STRUCTURES, Problem, random_problem
from tests.ot.ragged_graphs import random_graphs
from tfgw.nn import TFGWPooling
from tfgw.ot import START_KINDS, GraphBatch, Templates, Transport, backends, fgw, operators, pair_blocks, pairwise
from tfgw.ot.backends import cpu, cuda
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_blocks import PairBlocks
from tfgw.ot.pair_solver import PairGrid, PairOptions
from tfgw.ot.problem import NUM_OPERATOR_FIELDS
from tfgw.ot.problem import Problem as SolverProblem
from tfgw.ot.ragged import ragged_set
from tfgw.ot.tracing import is_eager

FORWARD = ["tfgw_index", "tfgw_prepare", "tfgw_start", "tfgw_solve"]
LEAVES = ("x", "node_weights", "edge_weight", "structure", "template_features", "template_structure",
          "template_weights", "alpha")  # fmt: skip


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    return emulated_for_eager_calls(monkeypatch)


def parts(problem: Problem, convert: Callable[[Tensor], Tensor] = torch.clone) -> dict[str, Tensor | None]:
    """All floating-point tensors of a problem, converted."""
    graphs, templates = problem.graphs, problem.templates
    tensors = (
        graphs.x, graphs.node_weights, graphs.edge_weight, graphs.structure, templates.features, templates.structure,
        templates.weights, problem.alpha,
    )  # fmt: skip
    return {name: None if t is None else convert(t) for name, t in zip(LEAVES, tensors, strict=True)}


def solve(problem: Problem, tensors: dict[str, Any], **options: Any) -> Transport:
    graphs = GraphBatch(
        batch=problem.graphs.batch,
        edge_index=problem.graphs.edge_index,
        **{name: tensors[name] for name in ("x", "node_weights", "edge_weight", "structure")},
    )
    templates = Templates(*(tensors[f"template_{name}"] for name in ("features", "structure", "weights")))
    return fgw(graphs, templates, tensors["alpha"], **options)


def solved_with_gradients(problem: Problem, tensors: dict[str, Any]) -> tuple[Transport, dict[str, Tensor]]:
    leaves = {name: None if t is None else t.detach().requires_grad_() for name, t in tensors.items()}
    found = solve(problem, leaves)
    scale = torch.arange(1.0, 1 + found.distances.numel()).to(found.distances).view_as(found.distances)
    (found.distances * scale).sum().backward()
    return found, {name: leaf.grad for name, leaf in leaves.items() if leaf is not None}


@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_results_and_gradients_of_the_operator(kind: str, monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu) -> None:
    problem = random_problem(1, kind, weights="zeros")
    ours, grads = solved_with_gradients(problem, parts(problem))
    assert gpu.launched[:4] == FORWARD
    assert not {"tfgw_index", "tfgw_prepare"} & set(gpu.launched[4:])  # the forward's are used
    monkeypatch.setattr(backends, "backend_of", lambda tensor: cpu)
    core, core_grads = solved_with_gradients(problem, parts(problem))
    for name in Transport._fields:
        torch.testing.assert_close(getattr(ours, name), getattr(core, name), rtol=1e-10, atol=1e-12, msg=name)
    assert set(grads) == set(core_grads)
    for name, grad in core_grads.items():
        torch.testing.assert_close(grads[name], grad, rtol=1e-9, atol=1e-11, msg=name)


def every_other(tensor: Tensor) -> Tensor:
    """The same values, in memory with gaps."""
    return torch.stack((tensor, torch.full_like(tensor, torch.nan)), -1)[..., 0]


@pytest.mark.parametrize("convert", [Tensor.float, every_other])
@pytest.mark.parametrize("kind", ["weighted", "dense"])
def test_other_precisions_and_strides(kind: str, convert: Callable[[Tensor], Tensor], gpu: EmulatedGpu) -> None:
    problem = random_problem(2, kind)
    expected, expected_grads = solved_with_gradients(problem, parts(problem))
    tensors = parts(problem, convert)
    found, grads = solved_with_gradients(problem, tensors)
    loose = {"rtol": 1e-4, "atol": 1e-5} if found.distances.dtype == torch.float32 else {"rtol": 0, "atol": 0}
    assert found.distances.dtype == tensors["x"].dtype  # type: ignore[union-attr]
    torch.testing.assert_close(found.distances.double(), expected.distances, **loose)
    for name, grad in expected_grads.items():
        assert grads[name].dtype == tensors[name].dtype  # type: ignore[union-attr]
        torch.testing.assert_close(grads[name].double(), grad, msg=name, **loose)


@pytest.mark.parametrize("needed", ["x", "edge_weight", "template_structure", "alpha"])
def test_gradients_only_where_they_are_needed(needed: str, gpu: EmulatedGpu) -> None:
    problem = random_problem(3, "weighted")
    everything = solved_with_gradients(problem, parts(problem))[1]
    tensors = parts(problem)
    tensors[needed] = tensors[needed].requires_grad_()  # type: ignore[union-attr]
    found = solve(problem, tensors)
    scale = torch.arange(1.0, 1 + found.distances.numel()).double().view_as(found.distances)
    (found.distances * scale).sum().backward()
    for name, tensor in tensors.items():
        if tensor is not None:
            assert (tensor.grad is not None) == (name == needed)
    torch.testing.assert_close(tensors[needed].grad, everything[needed], rtol=1e-12, atol=1e-14)  # type: ignore[union-attr]


def test_no_gradients_without_need(gpu: EmulatedGpu) -> None:
    problem = random_problem(4, "sparse")
    assert not solve(problem, parts(problem)).distances.requires_grad
    leaves = parts(problem)
    leaves["x"].requires_grad_()  # type: ignore[union-attr]
    with torch.no_grad():
        found = solve(problem, leaves, plans=None)
    assert not found.distances.requires_grad
    assert found.plans is None
    found = solve(problem, leaves)
    assert found.distances.requires_grad
    assert not any(t.requires_grad for t in found[1:] if t is not None)


def test_second_derivatives_are_refused_in_the_same_words(gpu: EmulatedGpu) -> None:
    problem = random_problem(5, "sparse")
    leaves = parts(problem)
    x = leaves["x"].requires_grad_()  # type: ignore[union-attr]
    (first,) = torch.autograd.grad(solve(problem, leaves).distances.square().sum(), x, create_graph=True)
    (plain,) = torch.autograd.grad(solve(problem, leaves).distances.square().sum(), x)
    torch.testing.assert_close(first, plain, rtol=1e-10, atol=1e-12)
    with pytest.raises(RuntimeError, match="second derivatives of FGW are not defined"):
        first.sum().backward()


def test_distances_may_be_changed_in_place_but_not_what_they_came_from(gpu: EmulatedGpu) -> None:
    problem = random_problem(6, "sparse")
    leaves = parts(problem)
    features = leaves["template_features"].requires_grad_()  # type: ignore[union-attr]
    solve(problem, leaves).distances.mul_(2).sum().backward()
    distances = solve(problem, leaves).distances
    with torch.no_grad():
        features.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        distances.sum().backward()


def test_memory_goes_with_the_graph(gpu: EmulatedGpu) -> None:
    problem = random_problem(6, "sparse")
    leaves = parts(problem)
    leaves["x"].requires_grad_()  # type: ignore[union-attr]
    distances = solve(problem, leaves).distances
    distances.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        distances.sum().backward()


def test_the_cpu_names_the_error(gpu: EmulatedGpu) -> None:
    problem = random_problem(7, "sparse")
    tensors = parts(problem)
    tensors["x"][-1, 0] = torch.nan  # type: ignore[index]
    with pytest.raises(ValueError, match=r"^x: graph \d+ has a feature that is not finite"):
        solve(problem, tensors)


def test_what_the_kernels_cannot_do_goes_to_the_operator(gpu: EmulatedGpu) -> None:
    problem = random_problem(8, "sparse", template_nodes=513)
    found = solve(problem, parts(problem))
    assert not gpu.launched
    assert torch.equal(found.distances, fgw(problem.graphs, problem.templates, problem.alpha).distances)


def test_only_eager_calls_go_past_the_operator() -> None:
    x = torch.ones(2, 3)
    seen: list[bool] = []

    def look(t: Tensor) -> Tensor:
        seen.append(is_eager() and type(t) is Tensor)
        return t.sum()

    look(x)
    look(x.requires_grad_())
    assert seen == [True, True]
    seen.clear()
    torch.func.grad(look)(torch.ones(3))
    torch.vmap(look)(torch.ones(2, 3))
    torch.jit.trace(look, torch.ones(3), check_trace=False)
    with FakeTensorMode():
        look(torch.ones(3))
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(3))
    look(fake)
    assert len(seen) >= 5
    assert not any(seen)


def test_compiled_calls_use_the_operator() -> None:
    assert torch.compile(lambda t: t + is_eager(), backend="eager", fullgraph=True)(torch.zeros(1)) == 0


@pytest.mark.parametrize("with_plans", [False, True])
def test_no_two_results_of_an_operator_share_memory(with_plans: bool, gpu: EmulatedGpu) -> None:
    """PyTorch does not allow it."""
    problem = random_problem(1, "sparse")
    graphs, templates = problem.graphs, problem.templates
    given = SolverProblem(
        graphs.x, graphs.batch, graphs.num_graphs, None, graphs.edge_index, None, None, templates.structure,
        templates.features, torch.full((4, 5), 0.2, dtype=torch.float64), problem.alpha,
    )  # fmt: skip
    results = operators.fgw_op(*given[:NUM_OPERATOR_FIELDS], with_plans)
    assert gpu.launched
    assert len(results) == 9
    assert len({t.untyped_storage()._cdata for t in results}) == 9


def test_nothing_is_copied_but_a_single_alpha(gpu: EmulatedGpu) -> None:
    """Before the first launch, each copy costs the host as much as the launch."""
    problem = random_problem(10, "weighted")

    def copies(alpha: Tensor) -> int:
        tensors = {**parts(problem), "alpha": alpha}
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            solve(problem, tensors, plans=None)
        return [event.name for event in profiler.events()].count("aten::copy_")

    assert copies(torch.full((4,), 0.5, dtype=torch.float64)) == 0
    assert copies(torch.tensor(0.5, dtype=torch.float64)) == 1


class Calls(TorchDispatchMode):
    """Names of all calls of PyTorch's, with how many kernels were launched before each."""

    def __init__(self, gpu: EmulatedGpu) -> None:
        super().__init__()
        self.gpu, self.calls = gpu, list[tuple[str, int]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((str(func), len(self.gpu.launched)))
        return func(*args, **(kwargs or {}))

    def before(self, launches: int) -> int:
        return sum(launched < launches for _, launched in self.calls)


def test_a_layer_asks_little_of_the_host(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call costs it some microseconds, of which a step has a few hundred."""
    for module in ("checks", "dispatch"):  # which see that somebody listens
        monkeypatch.setattr(f"tfgw.ot.{module}.is_eager", lambda: True)
    problem = random_problem(11, "sparse")
    graphs = problem.graphs
    layer = TFGWPooling(graphs.x.shape[1], 4, 5).double()
    x, count = graphs.x.clone().requires_grad_(), graphs.num_graphs
    up = torch.ones(count, 4).double()
    with Calls(gpu) as mode:
        distances = layer(x, graphs.edge_index, graphs.batch, batch_size=count)
        forward = len(mode.calls)
        distances.backward(up)
    assert mode.before(1) == 1, mode.calls  # memory for what is prepared
    assert forward <= 6, mode.calls  # memory for distances, other results, plans; working memory
    assert len(mode.calls) - forward <= 11, mode.calls  # memory for gradients; accumulation
    assert x.grad is not None


def test_other_results_do_not_keep_the_plans(gpu: EmulatedGpu) -> None:
    problem = random_problem(12, "sparse")
    leaves = parts(problem)
    leaves["x"].requires_grad_()  # type: ignore[union-attr]
    found = solve(problem, leaves, plans=None)
    assert found.plans is None
    pairs = found.distances.numel()
    for result in (found.gaps, found.iterations, found.status, found.structure_costs):
        assert result.untyped_storage().nbytes() <= 8 * 4 * pairs


LAYERS: list[dict[str, Any]] = [
    {},
    {"directed": True, "alpha_per_template": True},
    {"alpha": 0.3, "learn_weights": False},
    {"learn_templates": False},
    {"structure": "shortest_path"},
    {"structure": "precomputed"},
    {"structure": "precomputed", "directed": True},
    {"template_nodes": 1},
    {"template_nodes": 17},
]


def layer_step(
    layer: TFGWPooling, problem: Problem, dtype: torch.dtype, batch_size: int | None = None
) -> tuple[Tensor, dict[str, Tensor | None]]:
    graphs = problem.graphs
    x, structure = graphs.x.to(dtype).requires_grad_(), None if graphs.structure is None else graphs.structure.to(dtype)
    layer.zero_grad()
    distances = layer(x, graphs.edge_index, graphs.batch, structure=structure, batch_size=batch_size)
    (distances * torch.arange(1.0, 1 + distances.numel()).to(distances).view_as(distances)).sum().backward()
    return distances.detach(), {"x": x.grad, **{name: p.grad for name, p in layer.named_parameters()}}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", LAYERS)
def test_layers(options: dict[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu) -> None:
    """The kernels read the layer's parameters, the operator reads what PyTorch makes of them."""
    torch.manual_seed(0)
    problem = random_problem(13, "sparse" if options.get("structure") != "precomputed" else "dense")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, **{"template_nodes": 5, **options}).to(dtype)
    ours, grads = layer_step(layer, problem, dtype)
    assert gpu.launched[:4] == ["tfgw_index", "tfgw_prepare", "tfgw_start", "tfgw_solve"]
    monkeypatch.setattr(backends, "backend_of", lambda tensor: cpu)
    core, core_grads = layer_step(layer, problem, dtype)
    close = {"rtol": 1e-9, "atol": 1e-11} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(ours, core, **close)  # type: ignore[arg-type]
    for name, grad in core_grads.items():
        if grad is None or not grad.numel():
            assert grads[name] is None or not grads[name].numel()  # type: ignore[union-attr]
        else:
            torch.testing.assert_close(grads[name], grad, msg=name, **close)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("options", LAYERS)
def test_layers_with_plain_input(
    options: dict[str, Any], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu
) -> None:
    """Without a closer look, the results are the same."""
    torch.manual_seed(0)
    problem = random_problem(13, "sparse" if options.get("structure") != "precomputed" else "dense")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, **{"template_nodes": 5, **options}).to(dtype)
    expected, expected_grads = layer_step(layer, problem, dtype)
    launched, gpu.driver.launched = gpu.launched, []
    monkeypatch.delattr("tfgw.ot.checks.GraphBatch")
    found, grads = layer_step(layer, problem, dtype, batch_size=problem.graphs.num_graphs)
    assert gpu.launched == launched
    assert torch.equal(found, expected)
    assert all(grad is expected_grads[name] or torch.equal(grad, expected_grads[name]) for name, grad in grads.items())  # type: ignore[arg-type]


PLAIN: dict[str, Any] = {
    "x": torch.ones(6, 3).double(),
    "edge_index": torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
    "batch": torch.tensor([0, 0, 1, 1, 1, 1]),
    "edge_weight": torch.ones(4).double(),
    "node_weights": torch.tensor([0.5, 0.5, 0.25, 0.25, 0.25, 0.25]).double(),
    "batch_size": 2,
}
NOT_PLAIN: dict[str, list[Any]] = {
    "x": [[1.0], torch.ones(6), torch.ones(5, 3).double(), torch.ones(6, 4).double(), torch.ones(6, 3).long(),
          torch.ones(0, 3).double(), torch.ones(6, 3, device="meta"), torch.ones(6, 3).double().to_sparse()],
    "edge_index": [None, torch.ones(2, 4), torch.ones(4).long(), torch.ones(3, 4).long(), torch.ones(2, 3).long(),
                   "edges"],
    "batch": [torch.zeros(6), torch.zeros(5).long(), torch.zeros(6, 1).long(), torch.zeros(6).int(), [0] * 6],
    "edge_weight": [torch.ones(4).long(), torch.ones(5).double(), torch.ones(4, 1).double(), 1.0],
    "node_weights": [torch.ones(6).long(), torch.ones(5).double(), torch.ones(6, 1).double(),
                     torch.ones(6, device="meta")],
    "batch_size": [0, -1],
}  # fmt: skip
BROKEN_LAYERS: dict[str, Any] = {
    "max_iter": 0,
    "tol": -1.0,
    "n_starts": 0,
    "start_kinds": ("none",),
    "num_threads": 0,
    "alpha": torch.ones(3).double(),
    "template_features": torch.ones(4, 5, 2).double(),
    "template_weights": torch.ones(4, 6).double(),
    "structure_entries": torch.ones(4, 10, dtype=torch.int64),
}


def error_of(layer: TFGWPooling, arguments: dict[str, Any]) -> str:
    with pytest.raises((ValueError, AttributeError, TypeError)) as caught:
        layer(**arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_what_is_not_plain_is_told_in_the_same_words(monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu) -> None:
    layer = TFGWPooling(3, 4, 5).double()
    layer(**PLAIN)
    assert gpu.launched
    gpu.launched.clear()
    calls = [(layer, {**PLAIN, name: value}) for name, values in NOT_PLAIN.items() for value in values]
    calls += [(layer, {**PLAIN, "structure": torch.ones(2, 2, 2).double()})]
    for name, value in BROKEN_LAYERS.items():
        broken = TFGWPooling(3, 4, 5, learn_templates=False, learn_weights=False, alpha=0.5).double()
        setattr(broken, name, value)
        calls.append((broken, PLAIN))
    ours = [error_of(*call) for call in calls]
    assert not gpu.launched
    monkeypatch.setattr("tfgw.ot.checks.is_eager", lambda: False)
    assert ours == [error_of(*call) for call in calls]


def test_one_alpha_may_have_any_shape(ask: str, gpu: EmulatedGpu) -> None:
    layer = TFGWPooling(3, 4, 5).double()
    expected = layer(**PLAIN)
    expected.sum().backward()
    grad = layer.alpha.grad
    for shape in ((1,), (1, 1, 1, 1)):
        layer.alpha = torch.nn.Parameter(torch.full(shape, 0.5).double())
        gpu.launched.clear()
        found = layer(**PLAIN)
        found.sum().backward()
        assert "tfgw_fold" in gpu.launched
        assert torch.equal(found, expected)
        assert torch.equal(layer.alpha.grad, grad.expand(shape))


def test_gradients_that_are_batched_are_refused(ask: str, gpu: EmulatedGpu) -> None:
    layer = TFGWPooling(3, 4, 5).double()
    x = PLAIN["x"].clone().requires_grad_()
    distances = layer(**{**PLAIN, "x": x}).flatten()
    with pytest.raises(ValueError, match=r"^gradient of the distances: has no memory of its own.*is_grads_batched"):
        torch.autograd.grad(distances, x, torch.eye(len(distances)).double(), is_grads_batched=True)


def test_what_is_left_of_a_transform_is_refused(ask: str, gpu: EmulatedGpu) -> None:
    left: list[Tensor] = []
    torch.func.vmap(lambda row: left.append(row) or row)(PLAIN["batch"][None])
    layer = TFGWPooling(3, 4, 5).double()
    with pytest.raises(ValueError, match=r"^batch: has no memory of its own"):
        layer(**{**PLAIN, "batch": left[0]})
    assert "tfgw_solve" not in gpu.launched


def test_second_derivatives_of_a_layer_are_refused(gpu: EmulatedGpu) -> None:
    problem = random_problem(14, "sparse")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, 5).double()
    parameters = [layer.structure_entries, layer.alpha]

    def distances() -> Tensor:
        return layer(problem.graphs.x, problem.graphs.edge_index, problem.graphs.batch)

    found = torch.autograd.grad(distances().sum(), parameters, create_graph=True)
    plain = torch.autograd.grad(distances().sum(), parameters)
    for first, second in zip(found, plain, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-10, atol=1e-12)
        with pytest.raises(RuntimeError, match="second derivatives of FGW are not defined"):
            first.sum().backward(retain_graph=True)


def test_a_layer_that_is_not_a_number(gpu: EmulatedGpu) -> None:
    problem = random_problem(15, "sparse")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, 5).double()
    with torch.no_grad():
        layer.structure_entries[2, 1] = torch.nan
    with pytest.raises(ValueError, match="template 2"):
        layer(problem.graphs.x, problem.graphs.edge_index, problem.graphs.batch)


def test_a_layer_that_the_kernels_cannot_solve(gpu: EmulatedGpu) -> None:
    problem = random_problem(16, "sparse")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, 513).double()
    layer(problem.graphs.x, problem.graphs.edge_index, problem.graphs.batch).sum().backward()
    assert not gpu.launched
    assert layer.structure_entries.grad is not None


def test_a_layer_with_several_starts(monkeypatch: pytest.MonkeyPatch, gpu: EmulatedGpu) -> None:
    """Eight fresh ones, and one that depends on them."""
    problem = random_problem(17, "sparse")
    layer = TFGWPooling(problem.graphs.x.shape[1], 4, 6, n_starts=9).double()
    found = []
    for backend in (cuda, cpu):
        monkeypatch.setattr(backends, "backend_of", lambda tensor, backend=backend: backend)
        layer.zero_grad()
        distances = layer(problem.graphs.x, problem.graphs.edge_index, problem.graphs.batch)
        (distances * torch.arange(1.0, 1 + distances.numel()).view_as(distances)).sum().backward()
        found.append((distances.detach(), [parameter.grad.clone() for parameter in layer.parameters()]))
    (ours, grads), (core, core_grads) = found
    assert gpu.launched.count("tfgw_starts_begin") == 2
    torch.testing.assert_close(ours, core, rtol=1e-10, atol=0)
    for grad, core_grad in zip(grads, core_grads, strict=True):
        torch.testing.assert_close(grad, core_grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("kind", "starts"), [("sparse", 1), ("weighted", 1), ("dense", 1), ("sparse", 9)])
def test_all_pairs_in_blocks(kind: str, starts: int, gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two templates at a time, padded to the larger one."""
    monkeypatch.setattr(pair_blocks, "TEMPLATES", 2)
    graphs = random_graphs(kind, sizes=(5, 16, 3, 12, 20))
    expected = pairwise(graphs, alpha=0.4, n_starts=starts)
    found = ragged_set(read_lists(graphs, None, features_only=False), canonical=True)
    options = PairOptions.checked(0.4, 1000, 1e-9, starts, START_KINDS)
    matrix = np.zeros((5, 5))
    for block in PairBlocks(found, PairGrid.of(found), options, torch.device("cpu")):
        first, second = block.pairs.T
        matrix[first, second] = matrix[second, first] = block.begin()()[block.is_wanted]
    ranks = found.ranks[0]
    torch.testing.assert_close(torch.from_numpy(matrix[np.ix_(ranks, ranks)]), expected, rtol=1e-10, atol=1e-12)
    launched = ("tfgw_solve", "tfgw_solve_small") if starts == 1 else ("tfgw_starts_walk",)
    assert sum(map(gpu.launched.count, launched)) == 2

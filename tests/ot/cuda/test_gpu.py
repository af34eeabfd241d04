"""On a real GPU: the same values, gradients and errors as on the CPU, nothing to set, the same bits each time."""

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor

from tests.ot.problems import STRUCTURES, Problem, random_problem, with_near_neighbours
from tests.ot.ragged_graphs import random_graphs
from tests.ot.symmetric_graphs import SYMMETRIC
from tfgw.nn import TFGWPooling
from tfgw.nn.layer_check import check_layer_kernels
from tfgw.ot import (
    START_KINDS,
    GraphBatch,
    Templates,
    Transport,
    diagnose,
    fgw,
    linear_transport,
    nearest,
    pairwise,
)
from tfgw.ot.checks import problem_of
from tfgw.ot.dispatch import solve as solve_problem
from tfgw.ot.starts import start_bits

pytest.importorskip("cupy", reason="CuPy is not installed")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def solve(problem: Problem, device: str, **options: Any) -> tuple[Transport, dict[str, Tensor]]:
    """The result, and the gradients of a weighted sum of the distances by name."""
    graphs, templates = problem.graphs, problem.templates
    tensors = {
        "x": graphs.x,
        "node_weights": graphs.node_weights,
        "edge_weight": graphs.edge_weight,
        "structure": graphs.structure,
        "template_features": templates.features,
        "template_structure": templates.structure,
        "template_weights": templates.weights,
        "alpha": problem.alpha,
    }
    leaves = {name: t.detach().to(device).requires_grad_() for name, t in tensors.items() if t is not None}
    graphs = GraphBatch(
        batch=graphs.batch.to(device),
        edge_index=None if graphs.edge_index is None else graphs.edge_index.to(device),
        **{name: leaves.get(name) for name in ("x", "node_weights", "edge_weight", "structure")},
    )
    templates = Templates(*(leaves.get(f"template_{name}") for name in ("features", "structure", "weights")))
    result = fgw(graphs, templates, leaves["alpha"], **options)
    scale = torch.arange(1, 1 + result.distances.numel()).to(result.distances).view_as(result.distances)
    (result.distances * scale).sum().backward()
    return result, {name: leaf.grad.cpu() for name, leaf in leaves.items() if leaf.grad is not None}


@pytest.mark.parametrize("weights", ["uniform", "random", "zeros"])
@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_values_and_gradients_of_the_cpu(kind: str, weights: str) -> None:
    problem = random_problem(1, kind, weights=weights)
    (cpu, cpu_grads), (gpu, gpu_grads) = solve(problem, "cpu"), solve(problem, "cuda")
    assert gpu.distances.is_cuda
    for name in Transport._fields:
        torch.testing.assert_close(getattr(gpu, name).cpu(), getattr(cpu, name), rtol=1e-10, atol=1e-12, msg=name)
    assert set(gpu_grads) == set(cpu_grads)
    for name, grad in cpu_grads.items():
        torch.testing.assert_close(gpu_grads[name], grad, rtol=1e-8, atol=1e-10, msg=name)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_ends_of_alpha(alpha: float) -> None:
    problem = random_problem(2, "sparse", alpha=alpha)
    (cpu, cpu_grads), (gpu, gpu_grads) = solve(problem, "cpu"), solve(problem, "cuda")
    torch.testing.assert_close(gpu.distances.cpu(), cpu.distances, rtol=1e-10, atol=1e-12)
    for name, grad in cpu_grads.items():
        torch.testing.assert_close(gpu_grads[name], grad, rtol=1e-8, atol=1e-10, msg=name)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_several_starts(kind: str) -> None:
    """Eight fresh ones, and two that depend on them; the same bits each time."""
    problem = random_problem(1, kind, weights="zeros")
    (cpu, cpu_grads), (gpu, gpu_grads) = (solve(problem, device, n_starts=10) for device in ("cpu", "cuda"))
    for name in Transport._fields:
        torch.testing.assert_close(getattr(gpu, name).cpu(), getattr(cpu, name), rtol=1e-10, atol=1e-12, msg=name)
    for name, grad in cpu_grads.items():
        torch.testing.assert_close(gpu_grads[name], grad, rtol=1e-8, atol=1e-10, msg=name)
    again, _ = solve(problem, "cuda", n_starts=10)
    assert torch.equal(gpu.distances, again.distances)
    assert torch.equal(gpu.plans, again.plans)


def test_the_same_bits_each_time() -> None:
    problem = random_problem(3, "directed", sizes=(30, 12, 25))
    (first, grads), (again, grads_again) = solve(problem, "cuda"), solve(problem, "cuda")
    assert torch.equal(first.distances, again.distances)
    assert torch.equal(first.plans, again.plans)
    assert all(torch.equal(grads[name], grads_again[name]) for name in grads)


def test_the_same_bits_of_graphs_of_equal_size() -> None:
    """Which of them are solved by four warps, and which by one, is not always the same."""
    problem = random_problem(5, "sparse", sizes=(60,) * 50, template_nodes=9, templates=8)
    first, grads = solve(problem, "cuda")
    for _ in range(5):
        again, grads_again = solve(problem, "cuda")
        assert torch.equal(first.distances, again.distances)
        assert all(torch.equal(grads[name], grads_again[name]) for name in grads)


@pytest.mark.parametrize(
    ("sizes", "template_nodes", "templates"),
    [
        ((45, 20, 33), 40, 2),
        ((45, 20, 33), 100, 2),
        ((211, 90, 130), 30, 2),
        ((45, 20, 33), 140, 2),
        ((310, 20, 33), 260, 2),
    ],
    ids=["templates of 40 nodes", "of 100 nodes", "large graphs", "of 140 nodes", "of 260 nodes"],
)
def test_values_and_gradients_of_other_sizes(sizes: tuple[int, ...], template_nodes: int, templates: int) -> None:
    problem = random_problem(6, "sparse", sizes=sizes, template_nodes=template_nodes, templates=templates)
    (cpu, cpu_grads), (gpu, gpu_grads) = solve(problem, "cpu"), solve(problem, "cuda")
    torch.testing.assert_close(gpu.distances.cpu(), cpu.distances, rtol=1e-10, atol=1e-12)
    for name, grad in cpu_grads.items():
        torch.testing.assert_close(gpu_grads[name], grad, rtol=1e-8, atol=1e-10, msg=name)


def many_small_pairs(template_nodes: int) -> Problem:
    """So many that one warp finds where each of them begins, and that most are solved by a kernel of their own."""
    sizes = (3, 9, 5, 13, 4, 7, 6, 8)
    batches = 9 * torch.cuda.get_device_properties(0).multi_processor_count // len(sizes)
    problem = random_problem(6, "sparse", sizes=sizes * batches, template_nodes=template_nodes, templates=8)
    return with_near_neighbours(problem, distance=1)


@pytest.mark.parametrize("template_nodes", [5, 20])
def test_several_starts_of_thousands_of_small_pairs(template_nodes: int) -> None:
    problem = many_small_pairs(template_nodes)
    (cpu, _), (gpu, _) = (solve(problem, device, n_starts=9) for device in ("cpu", "cuda"))
    torch.testing.assert_close(gpu.distances.cpu(), cpu.distances, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("template_nodes", [5, 20])
def test_thousands_of_small_pairs(template_nodes: int) -> None:
    problem = many_small_pairs(template_nodes)
    (cpu, cpu_grads), (gpu, gpu_grads) = solve(problem, "cpu"), solve(problem, "cuda")
    torch.testing.assert_close(gpu.distances.cpu(), cpu.distances, rtol=1e-10, atol=1e-12)
    for name, grad in cpu_grads.items():
        torch.testing.assert_close(gpu_grads[name], grad, rtol=1e-8, atol=1e-10, msg=name)
    again, grads_again = solve(problem, "cuda")
    assert torch.equal(gpu.distances, again.distances)
    assert all(torch.equal(gpu_grads[name], grads_again[name]) for name in gpu_grads)


def test_linear_transport() -> None:
    cost = torch.randn(7, 4, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(
        linear_transport(cost.cuda()).distances.cpu(), linear_transport(cost).distances, rtol=1e-12, atol=0
    )


def test_the_same_errors() -> None:
    problem = random_problem(4, "sparse")
    x = problem.graphs.x.clone()
    x[-1, 0] = torch.nan
    for device in ("cpu", "cuda"):
        graphs = GraphBatch(
            x.to(device), batch=problem.graphs.batch.to(device), edge_index=problem.graphs.edge_index.to(device)
        )
        templates = Templates(*(t.to(device) for t in vars(problem.templates).values()))
        with pytest.raises(ValueError, match=r"^x: graph 4 has a feature that is not finite"):
            fgw(graphs, templates, 0.5)


def test_a_layer_trains_there_in_single_precision_too() -> None:
    torch.manual_seed(0)
    problem = random_problem(5, "sparse")
    layer = TFGWPooling(3, 4, 5).float().cuda()
    x = problem.graphs.x.float().cuda().requires_grad_()
    distances = layer(x, problem.graphs.edge_index.cuda(), problem.graphs.batch.cuda())
    distances.sum().backward()
    assert distances.dtype == x.grad.dtype == torch.float32
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("options", [{}, {"directed": True, "alpha_per_template": True}, {"learn_templates": False}])
def test_layers_of_the_cpu(options: dict[str, bool]) -> None:
    torch.manual_seed(0)
    problem = random_problem(5, "sparse")
    layer = TFGWPooling(3, 4, 5, **options).double()
    found = []
    for device in ("cpu", "cuda"):
        net = copy.deepcopy(layer).to(device)
        x, batch = problem.graphs.x.to(device, copy=True).requires_grad_(), problem.graphs.batch.to(device)
        distances = net(x, problem.graphs.edge_index.to(device), batch)
        (distances * torch.arange(1.0, 1 + distances.numel(), device=device).view_as(distances)).sum().backward()
        grads = [t.grad.cpu() for t in (x, *net.parameters()) if t.grad is not None]
        found.append([distances.detach().cpu(), *grads])
    for ours, core in zip(*found, strict=True):
        torch.testing.assert_close(ours, core, rtol=1e-8, atol=1e-10)


def test_wide_templates_are_solved_on_the_cpu_with_one_warning() -> None:
    problem = random_problem(6, "sparse", template_nodes=513, templates=2)
    with pytest.warns(UserWarning, match="solving on the CPU: templates have 513 nodes, more than 512"):
        gpu, gpu_grads = solve(problem, "cuda")
    cpu, cpu_grads = solve(problem, "cpu")
    assert torch.equal(gpu.distances.cpu(), cpu.distances)
    assert all(torch.equal(gpu_grads[name], grad) for name, grad in cpu_grads.items())


def on_gpu(
    problem: Problem, dtype: torch.dtype = torch.float64, **leaves: Tensor
) -> tuple[GraphBatch, Templates, Tensor]:
    """Graphs, templates and α there, in a precision; ``leaves`` replace what they are named after."""

    def moved(name: str, value: object) -> object:
        if name in leaves:
            return leaves[name]
        if not isinstance(value, Tensor):
            return value
        return value.to("cuda", dtype if value.is_floating_point() else value.dtype)

    graphs = GraphBatch(**{name: moved(name, value) for name, value in vars(problem.graphs).items()})
    templates = Templates(**{name: moved(f"template_{name}", value) for name, value in vars(problem.templates).items()})
    return graphs, templates, problem.alpha.to("cuda", dtype)


def test_second_derivatives_are_refused() -> None:
    problem = random_problem(7, "sparse")
    x = problem.graphs.x.cuda().requires_grad_()
    (first,) = torch.autograd.grad(fgw(*on_gpu(problem, x=x)).distances.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives of FGW are not defined"):
        first.sum().backward()


def test_without_gradients() -> None:
    problem = random_problem(7, "sparse")
    x = problem.graphs.x.cuda().requires_grad_()
    with torch.no_grad():
        found = fgw(*on_gpu(problem, x=x), plans=None)
    assert not found.distances.requires_grad
    assert torch.equal(found.distances, fgw(*on_gpu(problem, x=x)).distances)


def test_what_a_solve_was_made_from_must_not_change_before_its_gradients() -> None:
    problem = random_problem(7, "sparse")
    x = problem.graphs.x.cuda().requires_grad_()
    distances = fgw(*on_gpu(problem, x=x)).distances
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        distances.sum().backward()


@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_single_precision_and_strides(kind: str) -> None:
    problem = random_problem(8, kind)
    graphs, templates, alpha = on_gpu(problem)
    expected = fgw(graphs, templates, alpha)
    single = fgw(*on_gpu(problem, torch.float32))
    assert single.distances.dtype == torch.float32
    torch.testing.assert_close(single.distances.double(), expected.distances, rtol=1e-4, atol=1e-5)
    x, features = (torch.stack((t, t.new_full(t.shape, torch.nan)), -1)[..., 0] for t in (graphs.x, templates.features))
    assert not x.is_contiguous()
    strided = fgw(*on_gpu(problem, x=x, template_features=features))
    assert torch.equal(strided.distances, expected.distances)


def test_several_streams_at_once() -> None:
    problems = [random_problem(seed, "weighted", sizes=(30, 12, 25)) for seed in range(4)]
    expected = [solve(problem, "cuda") for problem in problems]
    torch.cuda.synchronize()
    found = []
    for problem in problems:
        with torch.cuda.stream(torch.cuda.Stream()):
            found.append(solve(problem, "cuda"))
    torch.cuda.synchronize()
    for (one, grads), (other, other_grads) in zip(found, expected, strict=True):
        assert torch.equal(one.distances, other.distances)
        assert all(torch.equal(grads[name], other_grads[name]) for name in grads)


def test_a_thread_that_never_used_cuda_before() -> None:
    problem = random_problem(9, "sparse")
    expected, expected_grads = solve(problem, "cuda")
    with ThreadPoolExecutor(max_workers=1) as pool:
        found, grads = pool.submit(solve, problem, "cuda").result()
    assert torch.equal(found.distances, expected.distances)
    assert all(torch.equal(grads[name], grad) for name, grad in expected_grads.items())


def test_errors_do_not_stay() -> None:
    """After invalid input, the next call is as good as any."""
    problem = random_problem(4, "sparse")
    expected = fgw(*on_gpu(problem)).distances
    broken = problem.graphs.x.clone().cuda()
    broken[0, 0] = torch.inf
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^x: graph 0"):
            fgw(*on_gpu(problem, x=broken))
        assert torch.equal(fgw(*on_gpu(problem)).distances, expected)


@pytest.mark.parametrize("many", [False, True])
def test_a_captured_graph_replays(many: bool) -> None:
    problem = many_small_pairs(5) if many else random_problem(10, "sparse")
    graphs, templates, alpha = on_gpu(problem)
    graphs = GraphBatch(**{**vars(graphs), "batch_size": len(problem.sizes)})
    x = graphs.x
    fgw(graphs, templates, alpha)  # compiled before it is captured
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        distances = fgw(graphs, templates, alpha, plans=None).distances
    for _ in range(2):
        x.mul_(2)
        captured.replay()
        assert torch.equal(distances, fgw(graphs, templates, alpha).distances)


@pytest.mark.slow
def test_a_compiled_layer() -> None:
    torch.manual_seed(0)
    problem = random_problem(11, "sparse")
    layer = TFGWPooling(3, 4, 5).double().cuda()
    inputs = (problem.graphs.x.cuda(), problem.graphs.edge_index.cuda(), problem.graphs.batch.cuda())
    results = []
    for call in (layer, torch.compile(layer)):
        layer.zero_grad()
        distances = call(*inputs, batch_size=len(problem.sizes))
        distances.square().sum().backward()
        results.append([distances.detach(), *(p.grad.clone() for p in layer.parameters())])
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_another_device_than_the_current_one() -> None:
    problem = random_problem(12, "sparse")
    expected, _ = solve(problem, "cuda:0")
    found, _ = solve(problem, "cuda:1")
    torch.testing.assert_close(found.distances.cpu(), expected.distances.cpu(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ["sparse", "weighted", "directed", "dense"])
def test_all_pairs(kind: str) -> None:
    """Templates of all size classes, and a pair that is too large for the kernels. Rounding may decide between local
    minima of the largest pairs."""
    graphs = random_graphs(kind, sizes=(5, 130, 17, 514, 40, 12, 70, 290, 30, 513))
    expected = pairwise(graphs, alpha=0.1)
    found = pairwise([graph.cuda() for graph in graphs], alpha=0.1)
    assert found.is_cuda
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-2, atol=1e-12)
    small = torch.tensor([graph.num_nodes <= 40 for graph in graphs])
    torch.testing.assert_close(found.cpu()[small], expected[small], rtol=1e-9, atol=1e-12)
    assert torch.equal(pairwise(graphs, alpha=0.1, device="cuda"), found)
    assert torch.equal(found, found.T)
    part = pairwise(graphs[2:], graphs[:5], alpha=0.1, device="cuda")
    torch.testing.assert_close(part.cpu(), expected[2:, :5], rtol=1e-2, atol=1e-12)


@pytest.mark.parametrize("kinds", [("uniform", "anchored", "perturbed"), ("anchored",)])
def test_all_pairs_from_several_starts(kinds: tuple[str, ...]) -> None:
    graphs = random_graphs(sizes=(5, 16, 3, 12, 20, 31))
    options: dict[str, Any] = {"alpha": 0.4, "n_starts": 10, "start_kinds": kinds}
    found = pairwise(graphs, **options, device="cuda")
    torch.testing.assert_close(found.cpu(), pairwise(graphs, **options), rtol=1e-9, atol=1e-12)
    assert torch.equal(pairwise(graphs, **options, device="cuda"), found)


@pytest.mark.parametrize("n_starts", [1, 4, 10])
def test_the_diagnosis_of_the_cpu(n_starts: int) -> None:
    problem = random_problem(1, "weighted", weights="zeros", templates=4)
    graphs, templates = problem.graphs, problem.templates
    moved = (
        GraphBatch(
            graphs.x.cuda(),
            batch=graphs.batch.cuda(),
            edge_index=graphs.edge_index.cuda(),
            edge_weight=graphs.edge_weight.cuda(),
            node_weights=None if graphs.node_weights is None else graphs.node_weights.cuda(),
        ),
        Templates(templates.features.cuda(), templates.structure.cuda(), templates.weights.cuda()),
        problem.alpha.cuda(),
    )
    found = diagnose(*moved, n_starts=n_starts)
    expected = diagnose(graphs, templates, problem.alpha, n_starts=n_starts)
    for name, values in expected._asdict().items():
        assert not getattr(found, name).is_cuda
        torch.testing.assert_close(getattr(found, name), values, rtol=1e-9, atol=1e-11, msg=name)
    assert torch.equal(found.distances, fgw(*moved, n_starts=n_starts).distances.cpu())
    for name, values in diagnose(*moved, n_starts=n_starts)._asdict().items():
        assert torch.equal(getattr(found, name), values), name


def test_a_layer_is_diagnosed_where_it_is() -> None:
    problem = random_problem(4, "sparse", sizes=(9, 30, 14, 22) * 8)
    graphs = problem.graphs
    torch.manual_seed(0)
    pool = TFGWPooling(graphs.x.shape[1], 6, 5, n_starts=4).double().cuda()
    inputs = (graphs.x.cuda(), graphs.edge_index.cuda(), graphs.batch.cuda())
    found = pool.diagnose(*inputs)
    assert torch.equal(found.distances, pool(*inputs).detach().cpu())
    assert (found.lower_bounds <= found.distances).all()
    assert (found.spreads > 1e-6).any()


def test_more_pinned_nodes_than_lanes() -> None:
    """Walks begin at up to 32 nodes of a graph at a time, here also of a graph too large for shared memory."""
    problem = random_problem(12, "weighted", sizes=(41, 6, 260), template_nodes=5, templates=7)
    (ours, grads), (core, core_grads) = (
        solve(problem, device, n_starts=18, start_kinds=("anchored",)) for device in ("cuda", "cpu")
    )
    torch.testing.assert_close(ours.distances.cpu(), core.distances, rtol=1e-10, atol=0)
    for name, grad in grads.items():
        torch.testing.assert_close(grad.cpu(), core_grads[name], rtol=1e-7, atol=1e-10)


def test_all_pairs_continue_after_a_crash(tmp_path: Path) -> None:
    graphs, path = random_graphs(sizes=(9, 20, 12, 33, 7)), tmp_path / "distances"
    whole = pairwise(graphs, alpha=0.4, device="cuda", checkpoint=path)
    path.write_bytes(path.read_bytes()[:-20])
    assert torch.equal(pairwise(graphs, alpha=0.4, device="cuda", checkpoint=path), whole)
    with pytest.raises(ValueError, match="checkpoint"):
        pairwise(graphs, alpha=0.4, device="cpu", checkpoint=path)


@pytest.mark.parametrize("options", [{"alpha": 0.5}, {"alpha": 0.0}, {"alpha": 0.5, "n_starts": 10}])
def test_nearest_neighbours_are_those_of_all_pairs(options: dict[str, Any]) -> None:
    """Bit for bit, with labels and therefore ties in most pairs, and thousands of small pairs."""
    sizes = [3 + number % 37 for number in range(400)]
    graphs = random_graphs(sizes=sizes if "n_starts" not in options else sizes[:80])
    for graph in graphs:
        graph.x = graph.x.round()
    distances = pairwise(graphs, **options, device="cuda").fill_diagonal_(torch.inf)
    found = nearest(graphs, top=3, **options, device="cuda")
    assert found.indices.is_cuda
    expected = distances.sort(dim=1, stable=True)
    assert torch.equal(found.distances, expected.values[:, :3])
    assert torch.equal(found.indices, expected.indices[:, :3])
    assert found.num_solved < 0.8 * found.num_pairs


@pytest.mark.parametrize("kind", ["weighted", "directed", "dense"])
def test_nearest_neighbours_in_another_list(kind: str) -> None:
    """Templates of all size classes, and a pair that is too large for the kernels."""
    graphs = random_graphs(kind, sizes=(5, 130, 17, 514, 40, 12, 70, 290, 30, 513))
    queries, others = [graph.cuda() for graph in graphs[:7]], graphs[3:]
    expected = pairwise(queries, others, alpha=0.1).sort(dim=1, stable=True)
    found = nearest(queries, others, top=2, alpha=0.1)
    assert torch.equal(found.distances, expected.values[:, :2])
    assert torch.equal(found.indices, expected.indices[:, :2])


@pytest.mark.parametrize("n_starts", [1, 10])
def test_some_pairs_are_not_solved(n_starts: int) -> None:
    """The others have the same bits as if all were solved."""
    problem = random_problem(8, "weighted", sizes=(12, 70, 5, 33, 160, 8) * 50, templates=6)
    given = problem_of(
        GraphBatch(
            problem.graphs.x.cuda(),
            batch=problem.graphs.batch.cuda(),
            edge_index=problem.graphs.edge_index.cuda(),
            edge_weight=problem.graphs.edge_weight.cuda(),
            batch_size=300,
        ),
        Templates(problem.templates.features.cuda(), problem.templates.structure.cuda()),
        0.5,
        n_starts=n_starts,
        start_kinds=start_bits(START_KINDS),
    )
    skipped = torch.rand(300, 6, generator=torch.Generator().manual_seed(0)) < 0.9
    every = solve_problem(given, wanted=0).distances.cpu()
    some = solve_problem(given._replace(skipped=skipped.byte().cuda()), wanted=0).distances.cpu()
    assert torch.equal(some[~skipped], every[~skipped])
    assert not some[skipped].any()


@pytest.mark.parametrize("name", ["cycles of two lengths", "hypercube", "regular", "twins"])
def test_the_numbering_of_template_nodes_changes_no_bit(name: str) -> None:
    """Not even where all of them are alike."""
    structure = torch.from_numpy(nx.to_numpy_array(SYMMETRIC[name]))
    nodes, count, generator = len(structure), 9, torch.Generator().manual_seed(0)
    orders = [torch.randperm(nodes, generator=generator) for _ in range(count)]
    problem = random_problem(7, "sparse", sizes=(14, 3, 22))
    graphs = GraphBatch(
        problem.graphs.x.cuda(), batch=problem.graphs.batch.cuda(), edge_index=problem.graphs.edge_index.cuda()
    )
    features = torch.ones(count, nodes, problem.graphs.x.shape[1], dtype=torch.float64)
    templates = Templates(features.cuda(), torch.stack([structure[order][:, order] for order in orders]).cuda())
    distances = fgw(graphs, templates, 0.5).distances
    assert torch.equal(distances, distances[:, :1].expand_as(distances))


def test_kernels_for_layers_agree_with_pytorch() -> None:
    checked = check_layer_kernels()
    assert checked.agrees
    assert checked.difference > 0  # another way of summing
    assert check_layer_kernels().origin in ("package", "cache")

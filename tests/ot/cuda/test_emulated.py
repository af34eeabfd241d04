"""The CUDA kernels, run lane by lane on a CPU, do what the C++ core does."""

import ctypes
import dataclasses
import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ot.cuda import emulation
from tests.ot.cuda.emulation import EmulatedDriver, EmulatedGpu
from tests.ot.problems import STRUCTURES, random_problem, with_near_neighbours
from tests.ot.problems import Problem as RandomProblem
from tfgw.ot import GraphBatch, Status, Templates, Transport, _core, fgw, linear_transport
from tfgw.ot.backends.cuda.compile import SOURCES
from tfgw.ot.backends.cuda.kernel_limits import SIZE_CLASSES
from tfgw.ot.backends.cuda.results import Saved
from tfgw.ot.backends.cuda.units import LAYERS, UNITS, Unit
from tfgw.ot.problem import Problem

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")

NAMES = {
    "distance": "distances",
    "structure_cost": "structure_costs",
    "feature_cost": "feature_costs",
    "plan": "plans",
    "row_potential": "graph_potentials",
    "col_potential": "template_potentials",
    "iterations": "iterations",
    "status": "status",
}


def as_input(problem: RandomProblem, start: Tensor | None = None) -> Problem:
    graphs, templates = problem.graphs, problem.templates
    count, nodes, _ = templates.features.shape
    weights = (
        templates.weights if templates.weights is not None else templates.features.new_full((count, nodes), 1 / nodes)
    )
    return Problem(
        x=graphs.x,
        batch=graphs.batch,
        batch_size=graphs.num_graphs,
        node_weights=graphs.node_weights,
        edge_index=graphs.edge_index,
        edge_weight=graphs.edge_weight,
        structure=graphs.structure,
        template_structure=templates.structure,
        template_features=templates.features,
        template_weights=weights,
        alpha=problem.alpha,
        initial_plans=start,
    )


def assert_same(found: tuple[dict[str, Tensor], Saved] | None, core: Transport) -> None:
    assert found is not None
    ours, _ = found
    for name, attribute in NAMES.items():
        torch.testing.assert_close(ours[name], getattr(core, attribute), rtol=1e-10, atol=1e-12, msg=name)


@pytest.mark.parametrize("weights", ["uniform", "random", "zeros"])
@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_solves_like_the_core(kind: str, weights: str) -> None:
    problem = random_problem(1, kind, weights=weights)
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, problem.alpha))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_solves_like_the_core_at_the_ends_of_alpha(alpha: float) -> None:
    problem = random_problem(2, "weighted", alpha=alpha)
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, alpha))


@pytest.mark.parametrize(("nodes", "sizes"), [(13, (44, 3)), (30, (40, 17)), (50, (60, 7)), (100, (35,))])
def test_solves_like_the_core_in_every_size_class(nodes: int, sizes: tuple[int, ...]) -> None:
    problem = random_problem(3, "sparse", sizes=sizes, template_nodes=nodes, templates=2, weights="uniform")
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, problem.alpha))


@pytest.mark.parametrize("size", [45, 70, 110, 140, 160])  # two words of arcs, three, four, five, more than are flat
@pytest.mark.parametrize("kind", ["sparse", "directed"])
def test_graphs_with_few_edges(kind: str, size: int) -> None:
    few = with_near_neighbours(random_problem(3, kind, sizes=(size, 5), template_nodes=9, templates=2))
    assert_same(emulation.solve(as_input(few)), fgw(few.graphs, few.templates, few.alpha))


def test_one_warp_for_a_pair_or_four() -> None:
    """The first pair is solved by four; of others a block has two at a time, then three, then four."""
    sizes = (4, 55, 70, 20, 43)
    few = with_near_neighbours(random_problem(4, "sparse", sizes=sizes, template_nodes=9, templates=2))
    counts = {"graphs": len(sizes), "nodes": sum(sizes), "edges": few.graphs.edge_index.shape[1], "columns": 9}
    _, _, (two, three, four), *_ = _core.gpu_solve_shape(shared=200 << 10, **counts)
    assert 20 <= 43 <= four < 55 <= three < 70 <= two
    assert_same(
        emulation.solve(as_input(few), gpu=EmulatedGpu(shared=200 << 10)), fgw(few.graphs, few.templates, few.alpha)
    )


class WithoutLargePairs(EmulatedDriver):
    """Leaves out what `solve` would do."""

    def function(self, name: str, columns: int) -> Callable[..., Any]:
        return (lambda *_: 0) if name == "tfgw_solve" else super().function(name, columns)


SMALL = (9, 3, 12, 5, 8, 4, 11, 6, 7, 2, 10, 1) * 2


@pytest.mark.parametrize(("template_nodes", "largest"), [(7, (38, 39)), (20, (13, 14))])
def test_many_small_pairs(template_nodes: int, largest: tuple[int, int]) -> None:
    """Then one warp finds where each of them begins, and they are solved by a kernel of their own. The last graph is
    empty."""
    sizes = (*SMALL, *largest)
    problem = random_problem(8, "sparse", sizes=sizes, template_nodes=template_nodes, templates=3)
    few = with_near_neighbours(problem, distance=1)
    few = dataclasses.replace(few, graphs=dataclasses.replace(few.graphs, batch_size=len(sizes) + 1))
    core, gpu = fgw(few.graphs, few.templates, few.alpha), EmulatedGpu()
    assert_same(emulation.solve(as_input(few), gpu=gpu), core)
    assert gpu.launched[2:] == ["tfgw_start_many", "tfgw_solve", "tfgw_solve_small"]
    assert [launch[1:3] for launch in gpu.driver.launches[3:]] == [(2, 128), (3, 128)]

    # Other features than before, for memory may still have the results.
    other = dataclasses.replace(few, graphs=dataclasses.replace(few.graphs, x=2 * few.graphs.x))
    found = emulation.solve(as_input(other), gpu=EmulatedGpu(driver=WithoutLargePairs()))
    assert found is not None
    is_same = torch.isclose(found[0]["distance"], fgw(other.graphs, other.templates, other.alpha).distances)
    assert is_same.all(1).tolist() == [*(n < largest[1] for n in sizes), True]


@pytest.mark.parametrize("kind", ["directed", "dense"])
def test_many_small_pairs_for_four_warps(kind: str) -> None:
    problem = random_problem(8, kind, sizes=SMALL, template_nodes=7, templates=3)
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, problem.alpha))


def test_which_kernel_solves_a_pair_changes_no_bit() -> None:
    problem = with_near_neighbours(random_problem(8, "sparse", sizes=SMALL, template_nodes=7, templates=2))
    few, many = EmulatedGpu(processors=9), EmulatedGpu(processors=1)
    first, second = (emulation.solve(as_input(problem), gpu=gpu) for gpu in (few, many))
    assert "tfgw_solve_small" in many.launched
    assert "tfgw_solve_small" not in few.launched
    assert "tfgw_start_many" not in few.launched + many.launched
    assert first is not None
    assert second is not None
    for name, result in first[0].items():
        assert torch.equal(result, second[0][name]), name


@pytest.mark.parametrize(
    ("kind", "sizes", "template_nodes"),
    [
        ("sparse", SMALL, 7),  # many small pairs, solved by kernels of their own
        ("sparse", (70, 12, 55, 5, 33), 9),  # by four warps or by one
        ("dense", (14, 5, 9), 6),
        ("weighted", (11, 4, 40), 50),
    ],
)
def test_some_pairs_are_not_solved(kind: str, sizes: tuple[int, ...], template_nodes: int) -> None:
    """The others have the same bits as if all were solved."""
    problem = random_problem(8, kind, sizes=sizes, template_nodes=template_nodes, templates=3)
    problem = problem if kind == "dense" else with_near_neighbours(problem)
    every, some = (EmulatedGpu(processors=1) for _ in range(2))
    assert_skips(as_input(problem), every, some)
    assert some.launched == every.launched


def assert_skips(given: Problem, every: EmulatedGpu, some: EmulatedGpu) -> None:
    shape = given.batch_size, len(given.template_weights)
    skipped = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.6
    skipped[0], skipped[1] = True, False
    expected = emulation.solve(given, gpu=every)
    found = emulation.solve(given._replace(skipped=skipped.byte()), gpu=some)
    assert expected is not None
    assert found is not None
    of_rows = {name for name in found[0] if len(found[0][name]) == len(given.x)}
    assert of_rows == {"plan", "row_potential"}
    for name, values in found[0].items():
        solved = ~skipped[given.batch] if name in of_rows else ~skipped
        assert torch.equal(values[solved], expected[0][name][solved]), name
    assert (found[0]["status"][skipped] == int(Status.EMPTY)).all()
    assert not found[0]["distance"][skipped].any()


@pytest.mark.parametrize("leaves", [9, 42])
def test_a_hub(leaves: int) -> None:
    """One row of the structure is far longer than the others."""
    few = random_problem(9, "sparse", sizes=(leaves + 1, 6), template_nodes=5, templates=2)
    star = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
    others = few.graphs.edge_index[:, few.graphs.edge_index[0] > leaves]
    graphs = dataclasses.replace(few.graphs, edge_index=torch.cat([star, star.flip(0), others], dim=1))
    assert_same(
        emulation.solve(as_input(RandomProblem(graphs, few.templates, few.alpha))),
        fgw(graphs, few.templates, few.alpha),
    )


def test_repeated_solves_give_equal_bits() -> None:
    """Which graphs of equal size are solved by four warps, and which by one, is not always the same."""
    few = with_near_neighbours(random_problem(2, "sparse", sizes=(60,) * 7, template_nodes=8, templates=2))
    given, gpu = as_input(few), EmulatedGpu(processors=3)
    first, *others = (emulation.solve(given, gpu=gpu) for _ in range(4))
    assert first is not None
    for again in others:
        assert again is not None
        for name, result in first[0].items():
            assert torch.equal(result, again[0][name]), name


@pytest.mark.parametrize("size", [12, 33, 61])
def test_whether_one_warp_or_four_solve_a_pair_changes_no_bit(size: int) -> None:
    sizes = (70, 69, 68, 67, size)
    few = with_near_neighbours(random_problem(7, "sparse", sizes=sizes, template_nodes=8, templates=5))
    first = sum(sizes[:-1])
    counts = {"graphs": 5, "nodes": sum(sizes), "edges": few.graphs.edge_index.shape[1], "columns": 8}
    assert _core.gpu_solve_shape(shared=228 << 10, **counts)[2][0] >= size
    among_others = emulation.solve(as_input(few))
    edges = few.graphs.edge_index[:, few.graphs.edge_index[0] >= first] - first
    alone = GraphBatch(
        few.graphs.x[first:],
        batch=few.graphs.batch[first:] - 4,
        edge_index=edges,
        node_weights=None if few.graphs.node_weights is None else few.graphs.node_weights[first:],
    )
    by_four = emulation.solve(as_input(RandomProblem(alone, few.templates, few.alpha)))
    assert among_others is not None
    assert by_four is not None
    assert torch.equal(among_others[0]["distance"][4:], by_four[0]["distance"])
    assert torch.equal(among_others[0]["plan"][first:], by_four[0]["plan"])


def test_a_small_directed_graph_among_others() -> None:
    few = with_near_neighbours(random_problem(6, "sparse", sizes=(4, 30, 17), template_nodes=9, templates=2))
    source, target = few.graphs.edge_index
    graphs = dataclasses.replace(few.graphs, edge_index=few.graphs.edge_index[:, (source < target) | (source >= 4)])
    assert_same(
        emulation.solve(as_input(RandomProblem(graphs, few.templates, few.alpha))),
        fgw(graphs, few.templates, few.alpha),
    )


def test_structures_that_have_no_room_in_shared_memory() -> None:
    nodes, columns, distance = 40, 9, 4
    problem = random_problem(5, "sparse", sizes=(nodes,), template_nodes=columns, templates=2)
    few = with_near_neighbours(problem, distance)
    edges = few.graphs.edge_index.shape[1]
    assert edges < nodes * nodes / 4
    kernels = emulation.compiled(16)
    reserved, needed = 1 << 10, kernels.block_bytes() + kernels.shared_bytes(nodes, columns, 0)
    gpu = EmulatedGpu(shared=reserved + needed)
    _, shared, *_ = _core.gpu_solve_shape(shared=reserved + needed, graphs=1, nodes=nodes, edges=edges, columns=columns)
    assert needed <= shared < kernels.block_bytes() + kernels.shared_bytes(nodes, columns, edges)
    assert_same(emulation.solve(as_input(few), gpu=gpu), fgw(few.graphs, few.templates, few.alpha))


@pytest.mark.parametrize("shared", [8 << 10, 9 << 10, 10 << 10, 12 << 10, 28 << 10, 60 << 10])
def test_whatever_has_room_in_shared_memory(shared: int) -> None:
    """Which warps solve a pair, and where it has its matrices, changes nothing."""
    sizes = (33, 20, 14, 6, 5, 4)
    few = with_near_neighbours(random_problem(3, "sparse", sizes=sizes, template_nodes=9, templates=2))
    found = emulation.solve(as_input(few), gpu=EmulatedGpu(shared=shared))
    assert_same(found, fgw(few.graphs, few.templates, few.alpha))


@pytest.mark.parametrize(
    ("rows", "degree", "columns"), [(14, 2, 13), (18, 2, 17), (33, 4, 32), (30, 2, 27), (20, 1, 17)]
)
def test_graphs_of_three_times_the_average_size_have_room(rows: int, degree: int, columns: int) -> None:
    padded = _core.gpu_size_class(columns)
    counts = {"graphs": 100, "nodes": 100 * rows, "edges": 100 * rows * degree, "columns": columns}
    _, shared, small_graphs, *_ = _core.gpu_solve_shape(shared=228 << 10, **counts)
    kernels = emulation.compiled(padded)
    assert kernels.block_bytes() + kernels.shared_bytes(3 * rows, columns, 3 * rows * degree) <= shared
    for pairs, nodes in enumerate(small_graphs, start=2):
        assert kernels.block_bytes() + pairs * kernels.shared_bytes(nodes, columns, nodes * degree) <= shared


@pytest.mark.parametrize(
    ("rows", "degree", "columns", "least"), [(14, 2, 13, 30), (18, 2, 17, 14), (12, 3, 9, 30), (30, 2, 27, -1)]
)
def test_many_small_graphs_have_room(rows: int, degree: int, columns: int, least: int) -> None:
    counts = {"graphs": 100, "nodes": 100 * rows, "edges": 100 * rows * degree, "columns": columns}
    *_, nodes, shared = _core.gpu_solve_shape(shared=228 << 10, processors=3, **counts)
    assert (nodes == -1) if least == -1 else nodes >= least
    kernels = emulation.compiled(_core.gpu_size_class(columns))
    if nodes >= 0:
        assert kernels.block_bytes() + 4 * kernels.small_bytes(nodes, columns, nodes * degree) <= shared
    *_, nodes, shared = _core.gpu_solve_shape(shared=228 << 10, processors=4, **counts)
    assert nodes == -1  # too few


def test_degenerate_problems() -> None:
    """Equal weights and sizes that divide each other: every basis is degenerate, and every pivot a tie."""
    problem = random_problem(4, "dense", sizes=(12, 6, 24), template_nodes=12, weights="uniform")
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, problem.alpha))


@pytest.mark.parametrize("template_nodes", [7, 20, 50, 100])
def test_tied_costs(template_nodes: int) -> None:
    """Features are small integers, so that many cells cost the same. Plans may differ, but not what they cost."""
    problem = random_problem(3, "none", sizes=(9, 33, 2, 14), template_nodes=template_nodes, templates=2, alpha=0.0)
    graphs = dataclasses.replace(problem.graphs, x=problem.graphs.x.round())
    templates = dataclasses.replace(problem.templates, features=problem.templates.features.round())
    found = emulation.solve(as_input(RandomProblem(graphs, templates, problem.alpha)))
    assert found is not None
    expected = fgw(graphs, templates, problem.alpha).distances
    torch.testing.assert_close(found[0]["distance"], expected, rtol=1e-12, atol=0)


# As a matrix; as edges with weights, which a lone warp solves; among so many lone nodes that it has less memory.
@pytest.mark.parametrize(("listed", "others"), [(False, 0), (True, 0), (True, 40)])
def test_many_atoms_are_collapsed_like_in_the_core(listed: bool, others: int) -> None:
    """Gradients alone lead inside the polytope here, so that many vertices stay in use."""
    generator = torch.Generator().manual_seed(0)
    negative = -torch.eye(9).double() + 0.1 * torch.randn(9, 9, generator=generator).double()
    negative = negative + negative.T
    problem = random_problem(5, "dense", sizes=(9, *(1,) * others), template_nodes=8, templates=1, alpha=0.9)
    edges = {"edge_index": negative.nonzero().T, "edge_weight": negative.flatten()}
    graphs = GraphBatch(
        problem.graphs.x, batch=problem.graphs.batch, **(edges if listed else {"structure": negative.flatten()})
    )
    convex, gpu = RandomProblem(graphs, problem.templates, problem.alpha), EmulatedGpu()
    assert_same(emulation.solve(as_input(convex), gpu=gpu), fgw(graphs, problem.templates, problem.alpha))
    assert ("tfgw_solve_small" in gpu.launched) == (others > 0)


@pytest.mark.parametrize(("kind", "alpha"), [("sparse", 0.0), ("sparse", 1.0), *((kind, None) for kind in STRUCTURES)])
@pytest.mark.parametrize("nodes", [5, 40])
def test_starts_from_given_plans(kind: str, alpha: float | None, nodes: int) -> None:
    problem = random_problem(6, kind, weights="zeros", template_nodes=nodes, templates=2, alpha=alpha)
    start = torch.rand(len(problem.graphs.x), 2, nodes, generator=torch.Generator().manual_seed(0)).double()
    core = fgw(problem.graphs, problem.templates, problem.alpha, initial_plans=start)
    assert_same(emulation.solve(as_input(problem, start)), core)


def test_stops_after_max_iter() -> None:
    problem = random_problem(7, "sparse")
    core = fgw(problem.graphs, problem.templates, problem.alpha, max_iter=2)
    assert int(Status.MAX_ITER) in core.status
    assert_same(emulation.solve(as_input(problem)._replace(max_iter=2)), core)


def test_linear_transport() -> None:
    cost = torch.randn(11, 3, 5, generator=torch.Generator().manual_seed(0)).double()
    batch = torch.tensor([0] * 4 + [1] * 7)
    weights = torch.softmax(torch.randn(3, 5, generator=torch.Generator().manual_seed(1)).double(), 1)
    given = Problem(
        x=cost.new_empty(11, 0),
        batch=batch,
        batch_size=2,
        node_weights=None,
        edge_index=None,
        edge_weight=None,
        structure=None,
        template_structure=None,
        template_features=cost.new_empty(3, 5, 0),
        template_weights=weights,
        alpha=cost.new_zeros(3),
        cost=cost,
    )
    assert_same(emulation.solve(given), linear_transport(cost, batch=batch, template_weights=weights))


def test_empty_graphs_at_the_end() -> None:
    problem = random_problem(8, "sparse")
    given = as_input(problem)._replace(batch_size=len(problem.sizes) + 2)
    found = emulation.solve(given)
    assert found is not None
    ours, _ = found
    assert (ours["status"][-2:] == int(Status.EMPTY)).all()
    assert not ours["distance"][-2:].any()
    torch.testing.assert_close(
        ours["distance"][:-2], fgw(problem.graphs, problem.templates, problem.alpha).distances, rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("empty", [0, 2])
def test_padding_counts_for_nothing(empty: int, is_sorted: bool) -> None:
    """Nodes behind the last graph, with edges among them: the same bits, and gradients of 0. Graphs before may be
    empty."""
    problem = random_problem(8, "weighted", weights="random")
    given = as_input(problem)._replace(batch_size=len(problem.sizes) + empty)
    nodes, more = len(given.x), 5
    edges = torch.cat([given.edge_index, nodes + torch.tensor([[0, 2, 2], [3, 0, 1]])], 1)
    order = torch.arange(edges.shape[1]) if is_sorted else torch.arange(edges.shape[1]).flip(0)
    padded = given._replace(
        x=torch.cat([given.x, torch.full((more, given.x.shape[1]), torch.nan)]),
        batch=torch.cat([given.batch, torch.full((more,), given.batch_size)]),
        node_weights=torch.cat([given.node_weights, torch.full((more,), torch.nan)]),
        edge_index=edges[:, order],
        edge_weight=torch.cat([given.edge_weight, torch.full((3,), torch.nan)])[order],
        padded_nodes=True,
    )
    results = []
    for one in (given, padded):
        found = emulation.solve(one)
        assert found is not None
        solved, saved = found
        up = torch.randn(one.batch_size, len(problem.alpha), generator=torch.Generator().manual_seed(0)).double()
        results.append((solved, emulation.backward(one, saved, up)))
    (expected, expected_grads), (ours, grads) = results
    for name, value in expected.items():
        assert torch.equal(ours[name][: len(value)], value), name
    for name, grad in expected_grads.items():
        if name == "edge_weight":
            assert torch.equal(grads[name][order.argsort()][:-3], grad)
            assert not grads[name][order.argsort()][-3:].any()
        else:
            assert torch.equal(grads[name][: len(grad)], grad), name
            assert not grads[name][len(grad) :].any()


def test_what_is_no_padding() -> None:
    problem = random_problem(8, "sparse")
    given = as_input(problem)
    graphs, nodes = given.batch_size, len(given.x)
    last_but_one, first = given.batch.clone(), given.batch.clone()
    last_but_one[-2], first[0] = graphs, graphs  # in front of others
    beyond = given.batch.clone()
    beyond[-1] = graphs + 1
    for batch in (last_but_one, first, beyond):
        assert emulation.solve(given._replace(batch=batch, padded_nodes=True)) is None
    inside = given.batch.clone()
    inside[-1] = graphs
    assert emulation.solve(given._replace(batch=inside)) is None  # where nobody said that there is padding
    to_padding = torch.cat([given.edge_index, torch.tensor([[0], [nodes - 1]])], 1)
    assert emulation.solve(given._replace(batch=inside, edge_index=to_padding, padded_nodes=True)) is None


@pytest.mark.parametrize("many", [False, True])
def test_invalid_problems_have_no_distances(many: bool) -> None:
    """While a graph is captured, nobody reads the flag; gradients are left alone."""
    gpu = EmulatedGpu()
    gpu.driver.capturing = True
    problem = random_problem(8, "sparse", sizes=(3,) * 40 if many else (3, 5))
    given = as_input(problem)
    given.x[-1, 0] = torch.inf
    found = emulation.solve(given, gpu=gpu)
    assert found is not None
    assert ("tfgw_start_many" in gpu.launched) == many
    assert found[0]["distance"].isnan().all()
    for results in (found[1].pairs, found[1].plans):
        assert results is not None
        results.fill_(3.0)
    up = torch.ones(given.batch_size, len(problem.alpha), dtype=torch.float64)
    emulation.backward(given, found[1], up)  # reads nothing beyond its memory


def test_repeated_and_unsorted_edges() -> None:
    problem = random_problem(9, "weighted")
    edges, weights = problem.graphs.edge_index, problem.graphs.edge_weight
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))
    order = torch.cat([order, order[:5]])
    given = as_input(problem)._replace(edge_index=edges[:, order], edge_weight=weights[order])
    graphs = GraphBatch(
        problem.graphs.x, batch=problem.graphs.batch, node_weights=problem.graphs.node_weights,
        edge_index=edges[:, order], edge_weight=weights[order],
    )  # fmt: skip
    assert_same(emulation.solve(given), fgw(graphs, problem.templates, problem.alpha))


def test_edges_without_weights_are_a_set() -> None:
    """Repeated edges and loops change nothing, on the kernels as in the core."""
    problem = random_problem(6, "sparse", sizes=(14, 3, 9), template_nodes=6)
    edges = problem.graphs.edge_index
    assert edges is not None
    assert problem.graphs.edge_weight is None
    loops = torch.arange(0, len(problem.graphs.x), 4).expand(2, -1)
    messy = torch.cat([loops, edges, edges[:, ::3], loops[:, :2]], dim=1)
    given = dataclasses.replace(problem, graphs=dataclasses.replace(problem.graphs, edge_index=messy))
    assert_same(emulation.solve(as_input(given)), fgw(problem.graphs, problem.templates, problem.alpha))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("kind", ["none", *STRUCTURES])
def test_gradients_like_the_core(kind: str, again: bool) -> None:
    """On what the solve prepared, and prepared again."""
    assert_same_gradients(random_problem(10, kind, weights="zeros"), again=again)


def test_gradients_of_many_features() -> None:
    """So many that a block does not sum them up at once; nodes with more neighbours than a block has threads."""
    assert_same_gradients(random_problem(10, "sparse", sizes=(180, 7), features=67, templates=3, weights="zeros"))


@pytest.mark.parametrize("needed", [{"x"}, {"template_x"}, {"template_weights", "alpha"}])
def test_gradients_that_are_asked_for(needed: set[str]) -> None:
    problem = random_problem(10, "sparse")
    given = as_input(problem)
    found = emulation.solve(given)
    assert found is not None
    up = torch.ones(len(problem.sizes), len(problem.alpha), dtype=torch.float64)
    every, some = (emulation.backward(given, found[1], up, names) for names in (None, needed))
    assert set(some) == needed
    for name, gradient in some.items():
        torch.testing.assert_close(gradient, every[name], rtol=0, atol=0)


def assert_same_gradients(problem: RandomProblem, *, again: bool = False) -> None:
    given = as_input(problem)
    up = torch.randn(len(problem.sizes), len(problem.alpha), generator=torch.Generator().manual_seed(0)).double()
    found = emulation.solve(given)
    assert found is not None
    solved, saved = found
    ours = emulation.backward(given, solved if again else saved, up)
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in emulation.differentiable(given).items()}
    graphs = GraphBatch(
        leaves["x"], batch=given.batch, edge_index=given.edge_index, edge_weight=leaves.get("edge_weight"),
        structure=leaves.get("dense"), node_weights=leaves["weights"],
    )  # fmt: skip
    templates = Templates(leaves["template_x"], leaves.get("template_structure"), leaves["template_weights"])
    (fgw(graphs, templates, leaves["alpha"]).distances * up).sum().backward()
    assert set(ours) == set(leaves)
    for name, leaf in leaves.items():
        torch.testing.assert_close(ours[name], leaf.grad, rtol=1e-9, atol=1e-11, msg=name)


def broken(name: str) -> Problem:
    given = as_input(random_problem(11, "weighted"))
    value = getattr(given, name).clone()
    value.view(-1)[-1] = {"batch": 17, "edge_index": 1, "alpha": 1.5}.get(name, float("nan"))
    return given._replace(**{name: value})


@pytest.mark.parametrize(
    "name",
    [
        "x", "batch", "node_weights", "edge_index", "edge_weight", "template_structure", "template_features",
        "template_weights", "alpha",
    ],
)  # fmt: skip
def test_invalid_values_are_found(name: str) -> None:
    assert emulation.solve(broken(name)) is None


@pytest.mark.parametrize("missing", [1, -1])
def test_dense_structures_of_another_size_are_found(missing: int) -> None:
    given = as_input(random_problem(11, "dense"))
    assert given.structure is not None
    longer = torch.cat([given.structure, given.structure.new_zeros(1)])
    assert emulation.solve(given._replace(structure=longer[: len(given.structure) - missing])) is None


@pytest.mark.parametrize("columns", SIZE_CLASSES)
def test_host_and_kernels_count_working_memory_alike(columns: int) -> None:
    size = emulation.compiled(columns).workspace_size
    size.restype = ctypes.c_int64
    assert size(37) == _core.gpu_workspace_size(37, columns)
    assert size(37) % 2 == 0  # of a block's working memory: two numbers are read at once


@pytest.mark.parametrize("columns", SIZE_CLASSES)
def test_pairs_take_no_more_working_memory_than_is_counted(columns: int) -> None:
    taken = emulation.compiled(columns).workspace_taken
    taken.restype = ctypes.c_int64
    for rows, shared in itertools.product((1, 33, 5_000, 30_000), (0, 50_000, 113_000)):
        assert taken(rows, shared) <= _core.gpu_workspace_size(rows, columns)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("unit", [*UNITS, LAYERS], ids=lambda unit: unit.name)
def test_compiles_for_a_gpu(unit: Unit, tmp_path: Path) -> None:
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", "-DTFGW_COLUMNS=32", "-o", tmp_path / "kernels.ptx"]
    subprocess.run([*command, SOURCES / f"{unit.name}.cu"], check=True)
    entries = re.findall(r"\.entry (\w+)", (tmp_path / "kernels.ptx").read_text())
    assert sorted(entries) == sorted(unit.kernels)

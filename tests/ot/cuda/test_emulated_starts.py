"""Several starts: the CUDA kernels, run lane by lane on a CPU, find what the C++ core finds."""

import ctypes
import dataclasses
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ot.cuda import emulation
from tests.ot.cuda.emulation import EmulatedGpu
from tests.ot.cuda.test_emulated import SMALL, as_input, assert_same, assert_skips
from tests.ot.problems import STRUCTURES, random_problem, with_near_neighbours
from tests.ot.problems import Problem as RandomProblem
from tfgw.ot import START_KINDS, GraphBatch, Status, Templates, _core, fgw
from tfgw.ot.starts import start_bits

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")

SIZES = (7, 4, 9, 1)
WAVE = ["tfgw_starts_begin", "tfgw_starts"]
ANCHORS = ["tfgw_starts_pin", "tfgw_starts_walk"]
FRESH = ["tfgw_index", "tfgw_prepare", "tfgw_start", *ANCHORS, *WAVE]


def assert_same_as_core(
    problem: RandomProblem,
    starts: int,
    kinds: tuple[str, ...] = START_KINDS,
    *,
    given: Tensor | None = None,
    gpu: EmulatedGpu | None = None,
    **options: Any,
) -> None:
    core = fgw(
        problem.graphs,
        problem.templates,
        problem.alpha,
        n_starts=starts,
        start_kinds=kinds,
        initial_plans=given,
        **options,
    )
    bits = start_bits(kinds, given=given is not None)
    asked = as_input(problem, given)._replace(
        n_starts=starts, start_kinds=bits, batch_size=len(core.distances), **options
    )
    assert_same(emulation.solve(asked, gpu=gpu), core)


@pytest.mark.parametrize("weights", ["uniform", "zeros"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_kind_of_structure(kind: str, weights: str) -> None:
    """Eight fresh starts, and two that depend on them."""
    problem, gpu = random_problem(1, kind, weights=weights, sizes=SIZES, templates=2), EmulatedGpu(processors=9)
    assert_same_as_core(problem, 10, gpu=gpu)
    assert gpu.launched == [*FRESH, *WAVE, *WAVE]


@pytest.mark.parametrize(
    ("starts", "kinds"),
    [
        (1, ("anchored",)),
        (1, ("anchored", "perturbed")),
        (5, ("uniform",)),
        (12, ("anchored",)),
        (6, ("uniform", "anchored")),
        (11, ("uniform", "perturbed")),
        (13, ("anchored", "perturbed")),
    ],
)
def test_every_kind_of_start(starts: int, kinds: tuple[str, ...]) -> None:
    assert_same_as_core(random_problem(2, "sparse", sizes=SIZES, templates=2), starts, kinds)


PRODUCT = ["tfgw_starts_product", "tfgw_start"]


@pytest.mark.parametrize(
    ("starts", "kinds", "launched"),
    [
        (2, ("perturbed",), [*WAVE, *WAVE]),
        (5, ("perturbed",), 5 * WAVE),
        (3, ("uniform",), [*PRODUCT, *WAVE]),
        (4, ("anchored",), [*ANCHORS, *WAVE]),
        (10, START_KINDS, [*ANCHORS, *3 * WAVE]),
    ],
)
@pytest.mark.parametrize("kind", ["sparse", "dense_directed"])
def test_the_first_start_is_given(kind: str, starts: int, kinds: tuple[str, ...], launched: list[str]) -> None:
    """Starts at hh̄ᵀ then need what the kernel `start` finds there, in addition to what it finds at the given plans."""
    problem = random_problem(3, kind, weights="zeros", sizes=SIZES, templates=2)
    given = torch.rand(sum(SIZES), 2, 5, generator=torch.Generator().manual_seed(0)).double()
    gpu = EmulatedGpu(processors=9)
    assert_same_as_core(problem, starts, kinds, given=given, gpu=gpu)
    assert gpu.launched[3:] == launched


@pytest.mark.parametrize("kind", ["sparse", "directed", "dense"])
def test_more_pinned_nodes_than_lanes(kind: str) -> None:
    """Walks begin at up to 32 nodes of a graph at a time. The starts of the templates pin more."""
    problem = random_problem(12, kind, sizes=(41, 6), template_nodes=5, templates=7)
    assert_same_as_core(problem, 18, ("anchored",))


def test_quotients_of_walks_are_those_of_a_division() -> None:
    """Bit for bit, for numbers of any size and for divisors with extreme mantissas."""
    divided = emulation.compiled(16).quotient_of_walk
    divided.restype, divided.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_double)
    rng = np.random.default_rng(0)
    by = np.concatenate((rng.uniform(1, 2, 20_000), 2 - 2.0**-52 * np.arange(1, 5), 1 + 2.0**-52 * np.arange(5)))
    exponents = rng.choice([0, 0, 0, -3, 90, -340, 900, -900, -1030], len(by))
    by = np.ldexp(by, exponents)
    v = by * rng.uniform(0, 1, len(by)) * np.ldexp(1.0, rng.choice([0, 0, -2, -60, -500, -1000], len(by)))
    assert [divided(a, b) for a, b in zip(v.tolist(), by.tolist(), strict=True)] == (v / by).tolist()


def test_walks_over_weak_links() -> None:
    """After some of them, a walk is at nodes with a probability near the smallest numbers."""
    problem = random_problem(2, "weighted", sizes=(23, 9), template_nodes=6, templates=2)
    links = problem.graphs.edge_index
    assert links is not None
    assert problem.graphs.edge_weight is not None
    weights = problem.graphs.edge_weight * torch.where(links.sum(0) % 3 == 0, 1.0, 1e-30)
    few = dataclasses.replace(problem, graphs=dataclasses.replace(problem.graphs, edge_weight=weights))
    assert_same_as_core(few, 8, ("anchored",))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_ends_of_alpha(alpha: float) -> None:
    assert_same_as_core(random_problem(4, "weighted", alpha=alpha, sizes=SIZES, templates=2), 9)


@pytest.mark.parametrize("kinds", [START_KINDS, ("anchored",)])
@pytest.mark.parametrize(("sizes", "processors"), [(SMALL[:8], 1), ((41, 7, 30), 9)])
def test_some_pairs_are_not_solved(kinds: tuple[str, ...], sizes: tuple[int, ...], processors: int) -> None:
    """Their starts pin nothing, either, as walks begin at all pinned nodes of a graph."""
    problem = with_near_neighbours(random_problem(4, "sparse", sizes=sizes, template_nodes=6, templates=3))
    given = as_input(problem)._replace(n_starts=10, start_kinds=start_bits(kinds))
    assert_skips(given, EmulatedGpu(processors=processors), EmulatedGpu(processors=processors))


def test_linear_problems_have_one_start() -> None:
    problem, gpu = random_problem(4, "none"), EmulatedGpu()
    assert_same_as_core(problem, 9, gpu=gpu)
    assert gpu.launched[2:] == ["tfgw_start", "tfgw_solve"]


@pytest.mark.parametrize(("nodes", "sizes"), [(30, (40, 17)), (50, (21, 7)), (100, (15,))])
def test_every_size_class(nodes: int, sizes: tuple[int, ...]) -> None:
    problem = random_problem(5, "sparse", sizes=sizes, template_nodes=nodes, templates=1, weights="uniform")
    assert_same_as_core(problem, 9)


@pytest.mark.parametrize("size", [45, 110, 160])  # two words of arcs, four, more than are flat
def test_large_graphs(size: int) -> None:
    few = with_near_neighbours(random_problem(3, "sparse", sizes=(size, 5), template_nodes=9, templates=1))
    assert_same_as_core(few, 9)


SMALL = (9, 3, 12, 5, 8, 4, 11, 6, 7, 2, 10, 1)


def test_many_small_pairs() -> None:
    """They have a kernel of their own, for all starts. The last graph is empty."""
    sizes = (*SMALL, 38, 39)
    few = with_near_neighbours(random_problem(8, "sparse", sizes=sizes, template_nodes=7, templates=2), distance=1)
    few = dataclasses.replace(few, graphs=dataclasses.replace(few.graphs, batch_size=len(sizes) + 1))
    gpu = EmulatedGpu()
    assert_same_as_core(few, 9, gpu=gpu)
    assert gpu.launched == [*FRESH[:5], *2 * [*WAVE, "tfgw_starts_small"]]


def test_who_solves_a_start_changes_no_bit() -> None:
    """One warp or four, in one kernel or the other."""
    problem = with_near_neighbours(random_problem(8, "sparse", sizes=SMALL, template_nodes=7, templates=2))
    few, many = EmulatedGpu(processors=9), EmulatedGpu(processors=1)
    asked = as_input(problem)._replace(n_starts=9, start_kinds=start_bits(START_KINDS))
    first, second = (emulation.solve(asked, gpu=gpu) for gpu in (few, many))
    assert "tfgw_starts_small" in many.launched
    assert "tfgw_starts_small" not in few.launched
    assert first is not None
    assert second is not None
    for name, result in first[0].items():
        assert torch.equal(result, second[0][name]), name


@pytest.mark.parametrize(("template_nodes", "shared"), [(20, 200 << 10), (20, 150 << 10), (30, 200 << 10)])
def test_where_cross_terms_and_templates_are_changes_no_bit(template_nodes: int, shared: int) -> None:
    """With little shared memory, four average pairs fit into a block only if some of their data is in global memory."""
    sizes = (30, 28, 41, 26, 6, 27, 29, 25)
    problem = with_near_neighbours(random_problem(8, "sparse", sizes=sizes, template_nodes=template_nodes, templates=1))
    edges = problem.graphs.edge_index
    assert edges is not None
    counts = {"graphs": len(sizes), "nodes": sum(sizes), "edges": edges.shape[1], "columns": template_nodes}
    one, several = (_core.gpu_solve_shape(shared=shared, starts=n, **counts)[2][2] for n in (1, 9))
    assert one < sum(sizes) / len(sizes) < several
    asked = as_input(problem)._replace(n_starts=9, start_kinds=start_bits(START_KINDS))
    first, second = (emulation.solve(asked, gpu=EmulatedGpu(shared=bytes)) for bytes in (400 << 10, shared))
    assert first is not None
    assert second is not None
    for name, result in first[0].items():
        assert torch.equal(result, second[0][name]), name


@pytest.mark.parametrize(("rows", "degree", "columns"), [(33, 4, 32), (30, 2, 27), (37, 4, 26), (21, 1, 32)])
def test_four_pairs_have_room_for_what_must_be_in_shared_memory(rows: int, degree: int, columns: int) -> None:
    counts = {"graphs": 100, "nodes": 100 * rows, "edges": 100 * rows * degree, "columns": columns}
    _, shared, small_graphs, *_ = _core.gpu_solve_shape(shared=228 << 10, starts=8, **counts)
    assert small_graphs[2] >= rows
    kernels = emulation.compiled(32)
    for pairs, nodes in enumerate(small_graphs, start=2):
        assert kernels.block_bytes() + pairs * kernels.least_bytes(nodes, columns) <= shared


@pytest.mark.parametrize("shared", [9 << 10, 12 << 10, 28 << 10])
def test_whatever_has_room_in_shared_memory(shared: int) -> None:
    few = with_near_neighbours(random_problem(3, "sparse", sizes=(33, 14, 5), template_nodes=9, templates=1))
    assert_same_as_core(few, 9, gpu=EmulatedGpu(shared=shared))


def test_degenerate_problems() -> None:
    """Equal weights and sizes that divide each other: every basis is degenerate, so its history would show."""
    problem = random_problem(4, "dense", sizes=(12, 6, 24), template_nodes=12, weights="uniform", templates=2)
    assert_same_as_core(problem, 9)


def test_more_starts_than_a_round() -> None:
    """Two rounds, each with fresh starts and with starts that depend on them."""
    assert_same_as_core(random_problem(6, "sparse", sizes=(6, 4), templates=1), 74)


@pytest.mark.parametrize("max_iter", [1, 3, 8])
def test_stops_after_max_iter(max_iter: int) -> None:
    problem = random_problem(7, "sparse", sizes=SIZES, templates=3)
    core = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=9, max_iter=max_iter)
    assert (int(Status.MAX_ITER) in core.status) == (max_iter == 1)
    assert_same_as_core(problem, 9, max_iter=max_iter)


def circles(copies: int) -> RandomProblem:
    """Renumbered circles of 13 nodes with chords of two lengths, and one template of each."""
    generator = torch.Generator().manual_seed(0)
    classes = [nx.circulant_graph(13, [1, skip]) for skip in (3, 5)]
    matrices = torch.stack([torch.from_numpy(nx.to_numpy_array(graph)) for graph in classes])
    graphs = [matrices[c % 2] for c in range(copies)]
    orders = [torch.randperm(13, generator=generator) for _ in graphs]
    edges = [C[order][:, order].nonzero().T + 13 * b for b, (C, order) in enumerate(zip(graphs, orders, strict=True))]
    x = torch.ones(13 * copies, 1, dtype=torch.float64)
    batch = GraphBatch(x, batch=torch.arange(copies).repeat_interleave(13), edge_index=torch.cat(edges, 1))
    return RandomProblem(batch, Templates(torch.ones(2, 13, 1).double(), matrices), torch.ones(2).double())


def test_renumbered_copies_are_found() -> None:
    """The gradient at hh̄ᵀ says nothing about them; the first start that finds the copy is the last."""
    found = emulation.solve(as_input(circles(6))._replace(n_starts=4, start_kinds=start_bits(START_KINDS)))
    assert found is not None
    distance = found[0]["distance"]
    is_own = torch.eye(2).bool().repeat(3, 1)
    assert float(distance[is_own].max()) < 1e-12
    assert float(distance[~is_own].min()) > 0.01


def test_results_without_plans() -> None:
    problem = random_problem(9, "sparse", sizes=SIZES, templates=2)
    asked = as_input(problem)._replace(n_starts=5, start_kinds=start_bits(START_KINDS))
    for wanted in (0, 1):
        distances, *_ = EmulatedGpu().host.solve(asked, 1e-6, wanted)
        expected = fgw(problem.graphs, problem.templates, problem.alpha, n_starts=5).distances
        torch.testing.assert_close(distances, expected, rtol=1e-10, atol=0)


def test_padded_batches() -> None:
    problem = random_problem(10, "sparse", sizes=SIZES, templates=2)
    asked = as_input(problem)._replace(n_starts=9, start_kinds=start_bits(START_KINDS))
    nodes, graphs = len(asked.x), len(SIZES)
    assert asked.batch is not None
    assert asked.node_weights is not None
    padded = asked._replace(
        x=torch.cat((asked.x, torch.full((5, asked.x.shape[1]), 7.0).double())),
        batch=torch.cat((asked.batch, torch.full((5,), graphs))),
        node_weights=torch.cat((asked.node_weights, torch.zeros(5).double())),
        padded_nodes=True,
    )
    first, second = emulation.solve(asked), emulation.solve(padded)
    assert first is not None
    assert second is not None
    for name, result in first[0].items():
        assert torch.equal(second[0][name][: len(result)], result), name
    assert nodes + 5 == len(second[0]["plan"])


def test_invalid_input() -> None:
    problem = random_problem(11, "sparse")
    problem.graphs.x[3, 1] = torch.nan
    assert emulation.solve(as_input(problem)._replace(n_starts=9, start_kinds=start_bits(START_KINDS))) is None


@pytest.mark.parametrize("columns", [16, 32, 64, 128])
def test_starts_take_no_more_working_memory_than_is_counted(columns: int) -> None:
    kernels = emulation.compiled(columns)
    for name in ("starts_workspace_size", "starts_memory_taken", "starts_memory_size"):
        getattr(kernels, name).restype = ctypes.c_int64
    for rows in (1, 2, 33, 5_000, 30_000):
        assert kernels.starts_memory_taken(rows) <= kernels.starts_memory_size(rows)
        assert kernels.starts_workspace_size(rows) == _core.gpu_workspace_size(rows, columns, several=True)
        assert kernels.starts_workspace_size(rows) % 2 == 0

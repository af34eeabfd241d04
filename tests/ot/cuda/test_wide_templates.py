"""Templates of more than 128 nodes, whose basis the kernels keep in memory (wide_tree.cuh)."""

import dataclasses

import pytest
import torch

from tests.ot.cuda import emulation
from tests.ot.cuda.emulation import EmulatedGpu
from tests.ot.cuda.test_emulated import as_input, assert_same, assert_same_gradients
from tests.ot.problems import Problem, random_problem, with_near_neighbours
from tfgw.ot import GraphBatch, Templates, _core, fgw, linear_transport
from tfgw.ot.problem import Problem as Given

pytestmark = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler")


@pytest.mark.parametrize(
    ("nodes", "sizes", "kind", "weights"),
    [
        (140, (5, 37), "sparse", "uniform"),
        (131, (9,), "dense", "random"),
        (257, (11,), "directed", "zeros"),
    ],
)
def test_solves_like_the_core(nodes: int, sizes: tuple[int, ...], kind: str, weights: str) -> None:
    problem = random_problem(3, kind, sizes=sizes, template_nodes=nodes, templates=1, weights=weights)
    assert_same(emulation.solve(as_input(problem)), fgw(problem.graphs, problem.templates, problem.alpha))


@pytest.mark.slow
def test_more_rows_than_columns() -> None:
    """Most rows ship to a single column: they join the core and leave it."""
    few = with_near_neighbours(random_problem(3, "sparse", sizes=(190,), template_nodes=129, templates=1))
    assert_same(emulation.solve(as_input(few)), fgw(few.graphs, few.templates, few.alpha))


def degenerate(nodes: int) -> tuple[GraphBatch, Templates]:
    """As many nodes as a template has, all of equal weight: every second arc of a basis carries no flow."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 2, generator=generator, dtype=torch.float64)
    order = torch.randperm(nodes, generator=generator)
    noise = 0.3 * torch.randn(nodes, 2, generator=generator, dtype=torch.float64)
    return GraphBatch(x), Templates((x + noise)[order][None])


@pytest.mark.parametrize("shared", [228 << 10, 60 << 10])
def test_a_degenerate_assignment(shared: int) -> None:
    """With the basis in shared memory, and in global memory."""
    graphs, templates = degenerate(150)
    given = as_input(Problem(graphs, templates, torch.zeros(1, dtype=torch.float64)))
    found = emulation.solve(given._replace(batch=torch.zeros(150, dtype=torch.int64)), gpu=EmulatedGpu(shared=shared))
    core = fgw(graphs, templates, 0.0)
    assert found is not None
    torch.testing.assert_close(found[0]["distance"], core.distances, rtol=1e-12, atol=0)
    torch.testing.assert_close(found[0]["plan"], core.plans, rtol=0, atol=1e-15)


def test_linear_transport() -> None:
    cost = torch.randn(47, 2, 270, generator=torch.Generator().manual_seed(0)).double()
    batch = torch.tensor([0] * 30 + [1] * 17)
    weights = torch.softmax(torch.randn(2, 270, generator=torch.Generator().manual_seed(1)).double(), 1)
    given = Given(
        cost.new_empty(47, 0), batch, 2, None, None, None, None, None, cost.new_empty(2, 270, 0), weights,
        cost.new_zeros(2), cost=cost,
    )  # fmt: skip
    assert_same(emulation.solve(given), linear_transport(cost, batch=batch, template_weights=weights))


def test_starts_from_given_plans() -> None:
    problem = random_problem(6, "weighted", sizes=(7, 4), weights="zeros", template_nodes=133, templates=1, alpha=0.6)
    start = torch.rand(11, 1, 133, generator=torch.Generator().manual_seed(0)).double()
    core = fgw(problem.graphs, problem.templates, problem.alpha, initial_plans=start)
    assert_same(emulation.solve(as_input(problem, start)), core)


def test_gradients() -> None:
    assert_same_gradients(
        random_problem(10, "weighted", sizes=(6, 3), template_nodes=137, templates=2, weights="zeros")
    )


def test_nodes_that_are_alike_are_ordered_by_structure() -> None:
    """A ring of 134 nodes with two chords: refinement tells most of them apart."""
    nodes = 134
    ring = torch.zeros(nodes, nodes, dtype=torch.float64)
    for a, b in [*((i, (i + 1) % nodes) for i in range(nodes)), (0, 40), (7, 90)]:
        ring[a, b] = ring[b, a] = 1
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(2))
    problem = random_problem(4, "sparse", sizes=(5,), templates=2, template_nodes=nodes, weights="uniform", alpha=0.5)
    templates = Templates(torch.ones(2, nodes, 3, dtype=torch.float64), torch.stack([ring, ring[order][:, order]]))
    found = emulation.solve(as_input(dataclasses.replace(problem, templates=templates)))
    assert found is not None
    assert found[0]["distance"][0, 0] == found[0]["distance"][0, 1]
    assert torch.equal(found[0]["plan"][:, 0][:, order], found[0]["plan"][:, 1])


def test_shared_memory() -> None:
    """Two blocks share a multiprocessor; the basis of the widest templates leaves room for one."""
    counts = {"graphs": 3, "nodes": 900, "edges": 1000}
    blocks = [_core.gpu_solve_shape(shared=228 << 10, columns=columns, **counts)[0] for columns in (128, 129, 256, 257)]
    assert blocks == [2, 2, 2, 1]

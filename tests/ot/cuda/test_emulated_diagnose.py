"""Diagnoses of distances that the CUDA kernels find, run lane by lane on a CPU."""

import networkx as nx
import pytest
import torch

from tests.ot.cuda.emulation import COMPILER, EmulatedGpu, emulated_for_eager_calls
from tests.ot.problems import STRUCTURES, random_problem
from tfgw.ot import Diagnosis, GraphBatch, Status, Templates, backends, diagnose
from tfgw.ot.backends import cpu, cuda

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    return emulated_for_eager_calls(monkeypatch)


def on_cpu(graphs: GraphBatch, templates: Templates, alpha: object, **options: object) -> Diagnosis:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "backend_of", lambda tensor: cpu)
        return diagnose(graphs, templates, alpha, **options)


def assert_same(found: Diagnosis, expected: Diagnosis) -> None:
    for name, values in expected._asdict().items():
        torch.testing.assert_close(getattr(found, name), values, rtol=1e-9, atol=1e-11, msg=name)


SIZES = (7, 4, 9, 1)


@pytest.mark.parametrize("n_starts", [1, 4, 10])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_diagnosis_of_the_cpu(kind: str, n_starts: int, emulated: EmulatedGpu) -> None:
    """With starts that depend on others, too."""
    problem = random_problem(1, kind, weights="zeros", sizes=SIZES, templates=2)
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=n_starts)
    assert ("tfgw_starts_spread" in emulated.launched) == (n_starts > 1)
    assert_same(found, on_cpu(problem.graphs, problem.templates, problem.alpha, n_starts=n_starts))
    assert found.local_minima.dtype == torch.bool


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_ends_of_alpha(alpha: float, emulated: EmulatedGpu) -> None:
    problem = random_problem(2, "weighted", alpha=alpha, sizes=SIZES, templates=2)
    found = diagnose(problem.graphs, problem.templates, alpha, n_starts=9)
    assert_same(found, on_cpu(problem.graphs, problem.templates, alpha, n_starts=9))
    assert bool(found.spreads.any()) == (alpha > 0)


def test_starts_before_one_that_reaches_zero_count(emulated: EmulatedGpu) -> None:
    """The template is the second graph, renumbered. The first start is at a wrong matching of the nodes."""
    problem = random_problem(0, "sparse", sizes=(8, 11), templates=1, weights="uniform", alpha=0.98)
    graphs, structure = problem.graphs, torch.zeros(19, 19, dtype=torch.float64)
    structure[tuple(graphs.edge_index)] = 1
    order = 8 + torch.randperm(11, generator=torch.Generator().manual_seed(0))
    templates = Templates(graphs.x[order][None], structure[order][:, order][None])
    plans = torch.full((19, 1, 11), 1 / 88, dtype=torch.float64)
    plans[8:, 0] = torch.eye(11) / 11
    found = diagnose(graphs, templates, 0.98, n_starts=8, initial_plans=plans)
    assert_same(found, on_cpu(graphs, templates, 0.98, n_starts=8, initial_plans=plans))
    assert float(found.distances[1]) < 1e-12
    assert float(found.spreads.min()) > 0.05


def test_starts_after_one_that_reaches_zero_do_not_count(emulated: EmulatedGpu) -> None:
    """They run at the same time on a GPU, each by a warp if a larger graph came before, and end above 0."""
    two_cycles = torch.from_numpy(nx.to_numpy_array(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4))))
    order = torch.tensor([3, 0, 5, 1, 6, 2, 4])
    path = torch.from_numpy(nx.to_numpy_array(nx.path_graph(12)))
    graphs = GraphBatch(
        torch.ones(19, 1, dtype=torch.float64),
        batch=torch.tensor([0] * 12 + [1] * 7),
        edge_index=torch.block_diag(path, two_cycles[order][:, order]).nonzero().T,
    )
    templates = Templates(torch.ones(1, 7, 1, dtype=torch.float64), two_cycles[None])
    above = diagnose(graphs, templates, 0.9, n_starts=2)
    assert float(above.distances[1]) > 0.1
    plans = torch.full((19, 1, 7), 1 / 84, dtype=torch.float64)
    plans[12:, 0] = torch.eye(7)[order] / 7
    found = diagnose(graphs, templates, 0.9, n_starts=3, initial_plans=plans)
    assert float(found.distances[1]) < 1e-12
    assert float(found.spreads[1]) == 0


def test_what_has_not_converged_is_no_local_minimum(emulated: EmulatedGpu) -> None:
    problem = random_problem(1, "sparse", sizes=(3, 4, 2), templates=5, template_nodes=3, alpha=0.3)
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=1, max_iter=1)
    stopped = found.status == Status.MAX_ITER
    assert int(stopped.sum()) > 3
    assert not found.local_minima[stopped].any()


def test_empty_graphs_and_given_plans(emulated: EmulatedGpu) -> None:
    problem = random_problem(5, "sparse", sizes=SIZES, templates=2)
    graphs = problem.graphs
    longer = GraphBatch(graphs.x, graphs.batch, len(SIZES) + 2, graphs.edge_index, node_weights=graphs.node_weights)
    plans = torch.rand(sum(SIZES), 2, 5, generator=torch.Generator().manual_seed(0)).double()
    options = {"n_starts": 5, "initial_plans": plans}
    found = diagnose(longer, problem.templates, problem.alpha, **options)
    assert_same(found, on_cpu(longer, problem.templates, problem.alpha, **options))
    assert (found.status[-2:] == Status.EMPTY).all()
    assert not found.spreads[-2:].any()


def test_numbers_are_those_of_the_pairs_as_solved(emulated: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the GPU ends in a saddle point, the diagnosis says so, although the CPU would have found a minimum."""
    problem = random_problem(3, "sparse", sizes=(6, 8), templates=3, template_nodes=5)
    minimum = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=8)
    assert minimum.local_minima.all()
    forward = cuda.forward

    def worse(given: object, wanted: int) -> object:
        solution = forward(given, wanted)
        h = 1 / torch.tensor([6, 8])[given.batch].double()
        plans = (h[:, None, None] * given.template_weights[None]).contiguous()
        return solution._replace(results=solution.results._replace(plans=plans))

    monkeypatch.setattr(cuda, "forward", worse)
    found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=8)
    torch.testing.assert_close(found.distances, minimum.distances, rtol=0, atol=0)
    torch.testing.assert_close(found.lower_bounds, minimum.lower_bounds, rtol=0, atol=0)
    assert not found.local_minima.any()


def test_templates_that_are_too_large_are_solved_on_the_cpu(emulated: EmulatedGpu) -> None:
    problem = random_problem(6, "sparse", sizes=(5, 7), templates=1, template_nodes=130)
    with pytest.warns(UserWarning, match="several starts are limited to 128"):
        found = diagnose(problem.graphs, problem.templates, problem.alpha, n_starts=2)
    assert not emulated.launched
    assert_same(found, on_cpu(problem.graphs, problem.templates, problem.alpha, n_starts=2))

"""A pair's result depends on the pair alone: bit for bit the same in any company, on any thread count."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.ot.problems import STRUCTURES, Problem, random_problem
from tfgw.ot import GraphBatch, Templates, Transport, fgw

ROOT = Path(__file__).parents[2]
KINDS = ("none", *STRUCTURES)


def subset(problem: Problem, graphs: list[int], templates: list[int]) -> Problem:
    """The problem of some of the graphs and templates, in the given order."""
    whole = problem.graphs
    rows = np.concatenate([np.arange(len(whole.x))[problem.nodes_of(b)] for b in graphs])
    sizes = torch.tensor([problem.sizes[b] for b in graphs])
    fields = {
        "x": whole.x[rows],
        "node_weights": whole.node_weights[rows],
        "batch": torch.arange(len(graphs)).repeat_interleave(sizes),
    }
    if whole.structure is not None:
        fields["structure"] = torch.cat([torch.from_numpy(problem.structure_of(b).copy()).flatten() for b in graphs])
    if whole.edge_index is not None:
        owner = whole.batch[whole.edge_index[0]]
        kept = [(owner == b).nonzero().flatten() for b in graphs]
        starts = [0, *sizes.cumsum(0).tolist()]
        moves = [start - problem.nodes_of(b).start for start, b in zip(starts, graphs, strict=False)]
        fields["edge_index"] = torch.cat([whole.edge_index[:, e] + m for e, m in zip(kept, moves, strict=True)], 1)
        if whole.edge_weight is not None:
            fields["edge_weight"] = whole.edge_weight[torch.cat(kept)]
    chosen = problem.templates
    return Problem(
        GraphBatch(**fields),
        Templates(
            chosen.features[templates],
            None if chosen.structure is None else chosen.structure[templates],
            chosen.weights[templates],
        ),
        problem.alpha[templates],
    )


def solve(problem: Problem, threads: int = 1) -> Transport:
    return fgw(problem.graphs, problem.templates, problem.alpha, n_starts=2, num_threads=threads)


def gradients(problem: Problem, threads: int) -> list[torch.Tensor]:
    leaves = {
        name: getattr(problem.graphs, name).clone().requires_grad_()
        for name in ("x", "node_weights", "edge_weight", "structure")
        if getattr(problem.graphs, name) is not None
    }
    graphs = GraphBatch(**{**vars(problem.graphs), **leaves})
    ours = problem.templates
    templates = Templates(
        *(None if t is None else t.clone().requires_grad_() for t in (ours.features, ours.structure, ours.weights))
    )
    alpha = problem.alpha.clone().requires_grad_()
    fgw(graphs, templates, alpha, num_threads=threads).distances.square().sum().backward()
    parts = [*leaves.values(), templates.features, templates.weights]
    parts += [] if templates.structure is None else [templates.structure, alpha]
    return [part.grad for part in parts]


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_threads_changes_nothing(kind: str) -> None:
    sizes = tuple(int(n) for n in np.random.default_rng(0).integers(1, 14, size=37))
    problem = random_problem(0, kind, sizes=sizes)
    alone, alone_gradients = solve(problem), gradients(problem, 1)
    for threads in (2, 3):
        for one, other in zip(alone, solve(problem, threads), strict=True):
            assert torch.equal(one, other)
        for one, other in zip(alone_gradients, gradients(problem, threads), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_company_changes_nothing(kind: str) -> None:
    problem = random_problem(1, kind, weights="zeros")
    together = solve(problem, threads=2)
    for graphs, templates in [([2], [1]), ([4, 0, 2], [3, 0]), ([3, 1], [2, 2, 1, 0]), ([0, 0, 0], [3])]:
        part = subset(problem, graphs, templates)
        found = solve(part, threads=2)
        for new_b, b in enumerate(graphs):
            nodes, new_nodes = problem.nodes_of(b), part.nodes_of(new_b)
            assert torch.equal(found.plans[new_nodes], together.plans[nodes][:, templates])
            assert torch.equal(found.graph_potentials[new_nodes], together.graph_potentials[nodes][:, templates])
            for name in ("distances", "structure_costs", "feature_costs", "gaps", "iterations", "status"):
                assert torch.equal(getattr(found, name)[new_b], getattr(together, name)[b, templates])
            assert torch.equal(found.template_potentials[new_b], together.template_potentials[b, templates])


@pytest.mark.parametrize("kind", KINDS)
def test_template_nodes_without_weight_take_no_part(kind: str) -> None:
    problem = random_problem(2, kind)
    found = solve(problem)
    places = [0, 3, 4, 5, 7]  # of the five nodes among eight, the other three weightless
    count, _, features = problem.templates.features.shape
    wide = {
        "features": torch.full((count, 8, features), 9.0, dtype=torch.float64),
        "structure": torch.full((count, 8, 8), 0.5, dtype=torch.float64),
        "weights": torch.zeros(count, 8, dtype=torch.float64),
    }
    wide["features"][:, places] = problem.templates.features
    wide["weights"][:, places] = problem.templates.weights
    if kind == "none":
        del wide["structure"]
    else:
        wide["structure"][:, np.array(places)[:, None], places] = problem.templates.structure
    padded = solve(Problem(problem.graphs, Templates(**wide), problem.alpha))
    assert torch.equal(padded.distances, found.distances)
    assert torch.equal(padded.plans[:, :, places], found.plans)
    assert float(padded.plans[:, :, [1, 2, 6]].abs().max()) == 0
    assert torch.equal(padded.template_potentials[:, :, places], found.template_potentials)
    assert bool(padded.template_potentials.isfinite().all())


SOLVE_WITHOUT_A_SECOND_THREAD = """
import threading, torch
from tests.ot.problems import random_problem
from tfgw.ot import fgw
torch.set_num_threads(1)
problem = random_problem(7)
one, two = (fgw(problem.graphs, problem.templates, problem.alpha, num_threads=t).distances for t in (1, 2))
assert torch.equal(one, two)
try:
    threading.Thread(target=print).start()
except RuntimeError:
    print("no second thread")
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY, reason="the stack's size has a hard limit"
)
def test_where_the_system_gives_no_more_threads_one_does_the_work() -> None:
    # Each thread asks for a stack of 64 TiB, which no address space has room for.
    command = f"ulimit -s {64 << 30} && exec {sys.executable} -c '{SOLVE_WITHOUT_A_SECOND_THREAD}'"
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ran = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env={**os.environ, **single}, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "no second thread"), ran.stderr

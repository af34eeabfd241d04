"""Nearest neighbours by the CUDA kernels, run lane by lane on a CPU."""

import numpy as np
import pytest
import torch

from tests.ot.cuda.emulation import COMPILER, EmulatedGpu, emulated_for_eager_calls
from tests.ot.gpu_stand_in import StandIn
from tests.ot.ragged_graphs import random_graphs
from tfgw.ot import cpu_fallback, nearest, pair_blocks, pairwise
from tfgw.ot.backends import cuda

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.mark.parametrize("n_starts", [1, 9])
def test_neighbours_are_those_of_all_pairs(n_starts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, with labels and therefore ties in most pairs: each pair is in the same block."""
    generator = np.random.default_rng(0)
    graphs = random_graphs(sizes=generator.integers(3, 12, size=14 if n_starts == 1 else 7).tolist())
    for graph in graphs:
        graph.x = graph.x.round()
    stand_in, emulated = StandIn(monkeypatch), emulated_for_eager_calls(monkeypatch)
    monkeypatch.setattr(pair_blocks, "TEMPLATES", 5)
    options = {"alpha": 0.5, "device": "meta", "n_starts": n_starts}
    distances = pairwise(graphs, **options).fill_diagonal_(torch.inf)
    of_pairwise, launched = stand_in.solved, emulated.launched.copy()
    found = nearest(graphs, top=1, **options)
    assert stand_in.solved - of_pairwise == found.num_solved < 0.8 * of_pairwise
    expected = np.argsort(distances.numpy(), axis=1, kind="stable")[:, :1]
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.distances.numpy(), np.take_along_axis(distances.numpy(), expected, axis=1))
    assert set(emulated.launched) == set(launched)
    assert "tfgw_solve" in launched or n_starts > 1


def test_the_cpu_solves_what_an_old_gpu_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ragged solver, without blocks, and therefore with the CPU's bits."""
    graphs = random_graphs(sizes=(5, 9, 3, 12, 7, 4, 8))
    options = {"alpha": 0.5, "num_threads": 1}
    distances, neighbours = pairwise(graphs, **options), nearest(graphs, top=2, **options)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: tensor)
    old = EmulatedGpu(generation=7)
    asked: list[torch.device] = []
    monkeypatch.setattr(cuda, "gpu_of", lambda device: asked.append(device) or old)
    monkeypatch.setattr(cpu_fallback, "_warned", set())
    with pytest.warns(UserWarning, match="solving on the CPU: the GPU is older than compute capability 8.0"):
        assert torch.equal(pairwise(graphs, **options, device="cuda"), distances)
    found = nearest(graphs, top=2, **options, device="cuda")
    assert torch.equal(found.indices, neighbours.indices)
    assert found.num_solved == neighbours.num_solved
    assert asked == [torch.device("cuda", 3)] * 2
    assert not old.launched

"""Nearest neighbours by the CUDA kernels, run lane by lane on a CPU."""

import numpy as np
import pytest
import torch

from tests.ot.cuda.emulation import COMPILER, emulated_for_eager_calls
from tests.ot.gpu_stand_in import StandIn
from tests.ot.ragged_graphs import random_graphs
from tfgw.ot import nearest, pair_blocks, pairwise

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

"""Blocks of graphs × templates for a GPU, solved on the CPU: each pair once, with the values of the ragged solver."""

import sys

import numpy as np
import pytest
import torch

from tests.ot.ragged_graphs import random_graphs
from tfgw.ot import START_KINDS, pair_blocks, pairwise
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_blocks import PairBlocks
from tfgw.ot.pair_solver import PairGrid, PairOptions, PairSolver
from tfgw.ot.ragged import ragged_set

SIZES = (5, 17, 3, 16, 33, 12, 30, 16, 7, 40, 21, 66)
OPTIONS = PairOptions.checked(0.4, 1000, 1e-9, 1, START_KINDS)


@pytest.mark.parametrize("kind", ["sparse", "weighted", "directed", "dense"])
@pytest.mark.parametrize("second", [None, slice(4, None), slice(0, 5)])
@pytest.mark.parametrize(("templates", "entries"), [(64, 2**27), (3, 2**12), (1, 1)])
def test_each_pair_is_in_one_block(
    kind: str, second: slice | None, templates: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_blocks, "TEMPLATES", templates)
    monkeypatch.setattr(pair_blocks, "ENTRIES", entries)
    monkeypatch.setattr(pair_blocks, "CLASSES", (8, 16, 32))  # so that some pairs of large graphs are left
    graphs = random_graphs(kind, sizes=SIZES)
    others = None if second is None else graphs[second]
    found = ragged_set(read_lists(graphs[:8], others, features_only=False), canonical=True)
    grid = PairGrid.of(found)
    solver = PairSolver(found, OPTIONS, num_threads=2, checkpoint=None, purpose=b"")
    blocks = PairBlocks(found, grid, OPTIONS, torch.device("cpu"))
    pairs, distances = [], []
    for some, solve in blocks:
        pairs.append(some)
        distances.append(solve())
    left = np.concatenate([np.empty((0, 2), dtype=np.int64), *blocks.rest().blocks()])
    all_pairs = np.sort(np.concatenate([*pairs, left]), axis=1)
    expected = np.sort(np.concatenate(list(grid.blocks())), axis=1)
    assert sorted(map(tuple, all_pairs)) == sorted(map(tuple, expected))
    np.testing.assert_allclose(np.concatenate(distances), solver.distances(np.concatenate(pairs)), rtol=1e-12)


def test_features_only() -> None:
    found = ragged_set(read_lists(random_graphs("none"), None, features_only=True), canonical=True)
    options = OPTIONS._replace(alpha=0.0)
    blocks = PairBlocks(found, PairGrid.of(found), options, torch.device("cpu"))
    solver = PairSolver(found, options, num_threads=1, checkpoint=None, purpose=b"")
    ((pairs, solve),) = list(blocks)
    np.testing.assert_allclose(solve(), solver.distances(pairs), rtol=1e-12)


def test_a_device_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device stands for a GPU, and the CPU for its kernels."""
    graphs = random_graphs()
    expected = pairwise(graphs, alpha=0.4)
    asked = []

    def on_cpu(found: object, grid: PairGrid, options: PairOptions, device: torch.device) -> PairBlocks:
        asked.append(device.type)
        return PairBlocks(found, grid, options, torch.device("cpu"))

    module = sys.modules["tfgw.ot.pairwise"]
    monkeypatch.setattr(module, "checked_device", torch.device)
    monkeypatch.setattr(module, "PairBlocks", on_cpu)
    found = pairwise(graphs, alpha=0.4, device="meta")
    assert (asked, found.device.type, found.shape) == (["meta"], "meta", expected.shape)
    pairwise(graphs, alpha=0.4, device="meta", n_starts=2)
    pairwise(graphs, alpha=0.4, device="meta", pairs=[(0, 1)])
    assert len(asked) == 1

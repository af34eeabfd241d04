"""Blocks of graphs × templates for a GPU, solved on the CPU: each pair once, with the values of the ragged solver."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.ot.gpu_stand_in import StandIn
from tests.ot.ragged_graphs import random_graphs
from tfgw.ot import START_KINDS, pair_blocks, pairwise
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_blocks import PairBlock, PairBlocks
from tfgw.ot.pair_journal import PairJournal
from tfgw.ot.pair_solver import PairGrid, PairOptions, PairSolver
from tfgw.ot.ragged import ragged_set
from tfgw.ot.solved_blocks import solved_blocks

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
    monkeypatch.setattr(pair_blocks, "SIZE_CLASSES", (8, 16, 32))  # so that some pairs of large graphs are left
    graphs = random_graphs(kind, sizes=SIZES)
    others = None if second is None else graphs[second]
    found = ragged_set(read_lists(graphs[:8], others, features_only=False), canonical=True)
    grid = PairGrid.of(found)
    solver = PairSolver(found, OPTIONS, num_threads=2, checkpoint=None, purpose=b"")
    blocks = PairBlocks(found, grid, OPTIONS, torch.device("cpu"))
    pairs, distances = [], []
    for block in blocks:
        assert block.num_pairs == len(block.pairs)
        pairs.append(block.pairs)
        distances.append(block.begin()()[block.is_wanted])
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
    (block,) = list(blocks)
    np.testing.assert_allclose(block.begin()()[block.is_wanted], solver.distances(block.pairs), rtol=1e-12)


@pytest.mark.parametrize("second", [None, slice(4, None)])
def test_only_some_pairs_of_a_block(second: slice | None) -> None:
    graphs = random_graphs("sparse", sizes=SIZES)
    others = None if second is None else graphs[second]
    found = ragged_set(read_lists(graphs[:8], others, features_only=False), canonical=True)
    grid = PairGrid.of(found)
    every = np.sort(np.concatenate(list(grid.blocks())), axis=1)
    chosen = every[np.random.default_rng(0).permutation(len(every))[::3]]
    absent = np.array([[0, 0], [3, 2], [len(found.parts), len(found.parts) + 1]])
    blocks = PairBlocks(found, grid, OPTIONS, torch.device("cpu"))
    assert blocks.contains(chosen).all()
    pairs = []
    for block in blocks:
        some = block.only(np.concatenate([chosen, absent]))
        pairs.append(some.pairs)
        expected = block.begin()()
        np.testing.assert_array_equal(some.begin()()[some.is_wanted], expected[some.is_wanted])
    assert sorted(map(tuple, np.concatenate(pairs))) == sorted(map(tuple, chosen))


def test_the_next_block_is_begun_before_one_is_finished() -> None:
    events: list[str] = []

    def solve(number: int) -> Callable[[np.ndarray], Callable[[], np.ndarray]]:
        def begin(is_wanted: np.ndarray) -> Callable[[], np.ndarray]:
            events.append(f"begin {number}")
            return lambda: np.full(is_wanted.shape, events.append(f"wait {number}") or float(number))

        return begin

    def blocks() -> Iterator[PairBlock]:
        for number in range(4):
            events.append(f"choose {number}")
            yield PairBlock(np.arange(2), np.arange(3), np.full((2, 3), number != 1), solve(number))

    found = [(block.num_pairs, distances[0, 0]) for block, distances in solved_blocks(blocks(), PairJournal(None, b""))]
    assert found == [(6, 0), (6, 2), (6, 3)]  # one has no pairs
    steps = "choose 0, begin 0, choose 1, choose 2, begin 2, wait 0, choose 3, begin 3, wait 2, wait 3"
    assert events == steps.split(", ")


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A GPU that compares two templates at a time."""
    monkeypatch.setattr(pair_blocks, "TEMPLATES", 2)
    return StandIn(monkeypatch)


def test_a_device_is_asked_for(on_cpu: StandIn) -> None:
    graphs = random_graphs()
    expected = pairwise(graphs, alpha=0.4)
    found = pairwise(graphs, alpha=0.4, device="meta")
    assert on_cpu.asked == ["meta"]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    pairwise(graphs, alpha=0.4, device="meta", pairs=[(0, 1)])
    pairwise(graphs, alpha=0, device="meta", node_cost="hamming")
    assert len(on_cpu.asked) == 1


@pytest.mark.parametrize("second", [None, slice(4, None), slice(0, 5), slice(2, 12, 3)])
def test_blocks_fill_the_matrix(on_cpu: StandIn, second: slice | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With copies, with graphs in one list or in both, and with pairs that are left to the CPU."""
    monkeypatch.setattr(pair_blocks, "SIZE_CLASSES", (8, 16, 32))
    graphs = random_graphs("weighted", sizes=SIZES)
    first, others = [*graphs[:8], graphs[3]], None if second is None else graphs[second]
    expected = pairwise(first, others, alpha=0.4)
    torch.testing.assert_close(pairwise(first, others, alpha=0.4, device="meta"), expected, rtol=1e-12, atol=0)
    assert on_cpu.begun > 1


def test_several_starts(on_cpu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates beyond a size are left to the CPU, and blocks have fewer graphs."""
    monkeypatch.setattr(pair_blocks, "LARGEST_FOR_STARTS", 16)
    graphs = random_graphs("sparse", sizes=(5, 17, 3, 12, 20, 7))
    options: dict[str, Any] = {"alpha": 0.4, "n_starts": 3, "start_kinds": ("uniform", "anchored")}
    expected = pairwise(graphs, **options)
    assert not torch.equal(expected, pairwise(graphs, alpha=0.4))
    torch.testing.assert_close(pairwise(graphs, **options, device="meta"), expected, rtol=1e-12, atol=0)
    assert on_cpu.asked == ["meta"]
    assert on_cpu.begun == 2


@pytest.mark.parametrize("values", [0, 1, 3, 9, 20, 66])
def test_an_interrupted_call_continues(values: int, on_cpu: StandIn, tmp_path: Path) -> None:
    """Known distances are not solved again, except for those of a block that was not complete."""
    graphs, file = random_graphs("sparse", sizes=SIZES), tmp_path / "all.distances"
    expected = pairwise(graphs, alpha=0.4, device="meta", checkpoint=file)
    blocks, content = on_cpu.begun, file.read_bytes()
    pairs = len(SIZES) * (len(SIZES) - 1) // 2
    file.write_bytes(content[: len(content) - 8 * (pairs - values)])
    on_cpu.begun = 0
    assert torch.equal(pairwise(graphs, alpha=0.4, device="meta", checkpoint=file), expected)
    assert file.read_bytes() == content
    assert (on_cpu.begun == 0) == (values == pairs)
    assert (on_cpu.begun == blocks) == (values < 11 + 10)  # the first block has two templates

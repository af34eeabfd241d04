"""Nearest neighbours are those of solving all pairs, and most pairs are not solved."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.ot.gpu_stand_in import StandIn
from tests.ot.ragged_graphs import random_graphs, renumbered
from tfgw.ot import START_KINDS, nearest, pair_blocks, pairwise
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_solver import PairGrid, PairOptions, PairSolver
from tfgw.ot.ragged import ragged_set


def labelled(count: int, seed: int = 0) -> list[Data]:
    """Graphs with one-hot labels, so that many distances are equal; some occur twice, renumbered."""
    sizes = np.random.default_rng(seed).integers(3, 9, size=count)
    graphs = random_graphs(seed=seed, sizes=sizes.tolist())
    for graph in graphs:
        graph.x = graph.x.round()
    return [*graphs, *(renumbered(graph, seed=1) for graph in graphs[::4])]


def brute_force(distances: torch.Tensor, top: int) -> np.ndarray:
    return np.argsort(distances.numpy(), axis=1, kind="stable")[:, :top]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("top", [1, 4, 24])
def test_neighbours_among_themselves(alpha: float, top: int) -> None:
    graphs = labelled(20)
    distances = pairwise(graphs, alpha=alpha).fill_diagonal_(torch.inf)
    found = nearest(graphs, top=top, alpha=alpha)
    expected = brute_force(distances, top)
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.distances.numpy(), np.take_along_axis(distances.numpy(), expected, axis=1))


@pytest.mark.parametrize("kind", ["weighted", "directed", "dense"])
@pytest.mark.parametrize("top", [2, 5])
def test_neighbours_in_another_list(kind: str, top: int) -> None:
    """The lists have graphs in common."""
    graphs = random_graphs(kind, sizes=(5, 9, 3, 12, 7, 4, 8, 10, 6, 11))
    queries, others = graphs[:6], graphs[3:]
    distances = pairwise(queries, others, alpha=0.7)
    found = nearest(queries, others, top=top, alpha=0.7)
    expected = brute_force(distances, top)
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.distances.numpy(), np.take_along_axis(distances.numpy(), expected, axis=1))
    assert found.distances[3, 0] == 0


def test_most_pairs_are_not_solved() -> None:
    graphs = labelled(150)
    found = nearest(graphs, top=1, alpha=0.5)
    assert found.num_pairs <= 150 * 149 // 2
    assert found.num_solved < 0.2 * found.num_pairs


@pytest.mark.parametrize("kind", ["sparse", "weighted", "directed", "dense"])
@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_bounds_are_below_the_best_of_several_starts(kind: str, alpha: float) -> None:
    graphs = ragged_set(read_lists(random_graphs(kind), None, features_only=False), canonical=True)
    options = PairOptions.checked(alpha, 1000, 1e-9, 16, START_KINDS)
    solver = PairSolver(graphs, options, num_threads=2, checkpoint=None, purpose=b"")
    pairs = np.concatenate(list(PairGrid.of(graphs).blocks()))
    marginal, lower, values = solver.marginal_bounds(pairs), solver.lower_bounds(pairs), solver.distances(pairs)
    assert (lower <= values + 1e-12).all()
    assert (marginal <= lower + 1e-11).all()  # which is lowered by 1e-12 of its terms
    assert (marginal > 0.1 * values).mean() > 0.5


def test_marginal_bound_of_labels_is_the_wasserstein_distance() -> None:
    """Without structure and with one-hot features it is half the L1 distance of histograms, at cost 2."""
    graphs = [Data(x=torch.eye(4, dtype=torch.float64)[labels]) for labels in ([0, 0, 1], [1, 2, 3, 3, 0], [2, 2])]
    parts = ragged_set(read_lists(graphs, None, features_only=True), canonical=True)
    options = PairOptions.checked(0.0, 1000, 1e-9, 1, START_KINDS)
    solver = PairSolver(parts, options, num_threads=1, checkpoint=None, purpose=b"")
    pairs = np.concatenate(list(PairGrid.of(parts).blocks()))
    histograms = np.stack([part.node_weights @ part.x for part in parts.parts])
    expected = np.abs(histograms[pairs[:, 0]] - histograms[pairs[:, 1]]).sum(axis=1)
    np.testing.assert_allclose(solver.marginal_bounds(pairs), expected, rtol=1e-12)
    np.testing.assert_allclose(solver.distances(pairs), expected, rtol=1e-12)


def test_continued_from_a_checkpoint(tmp_path: Path) -> None:
    graphs, path = labelled(30), tmp_path / "distances"
    whole = nearest(graphs, top=3, alpha=0.5, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    again = nearest(graphs, top=3, alpha=0.5, checkpoint=path)
    assert torch.equal(again.indices, whole.indices)
    assert torch.equal(again.distances, whole.distances)
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match=r"checkpoint: .* of other graphs or options"):
        nearest(graphs, top=4, alpha=0.5, checkpoint=path)


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A GPU that compares five templates at a time, with up to six nodes."""
    monkeypatch.setattr(pair_blocks, "TEMPLATES", 5)
    monkeypatch.setattr(pair_blocks, "SIZE_CLASSES", (4, 6))
    monkeypatch.setattr(pair_blocks, "LARGEST_FOR_STARTS", 6)
    return StandIn(monkeypatch)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("top", [1, 4, 24])
def test_neighbours_on_a_gpu(alpha: float, top: int, on_gpu: StandIn) -> None:
    """They are those of the same GPU, and the CPU solves the pairs of two graphs that are too large for it."""
    graphs = labelled(20)
    distances = pairwise(graphs, alpha=alpha, device="meta").fill_diagonal_(torch.inf)
    of_pairwise = on_gpu.solved
    found = nearest(graphs, top=top, alpha=alpha, device="meta")
    assert on_gpu.asked == ["meta", "meta"]
    expected = brute_force(distances, top)
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.distances.numpy(), np.take_along_axis(distances.numpy(), expected, axis=1))
    on_the_gpu = on_gpu.solved - of_pairwise
    sizes = [graph.num_nodes for graph in graphs[:20]]
    large = sum(size > 6 for size in sizes)
    assert 0 < on_the_gpu <= found.num_solved <= on_the_gpu + large * (large - 1) // 2
    assert (on_the_gpu < of_pairwise) == (top < 24)


@pytest.mark.parametrize("kind", ["weighted", "dense"])
def test_neighbours_in_another_list_on_a_gpu(kind: str, on_gpu: StandIn) -> None:
    graphs = random_graphs(kind, sizes=(5, 9, 3, 12, 7, 4, 8, 10, 6, 11))
    queries, others = graphs[:6], graphs[3:]
    distances = pairwise(queries, others, alpha=0.7, device="meta", n_starts=2)
    found = nearest(queries, others, top=2, alpha=0.7, device="meta", n_starts=2)
    expected = brute_force(distances, 2)
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.distances.numpy(), np.take_along_axis(distances.numpy(), expected, axis=1))


def test_most_pairs_are_not_solved_on_a_gpu(on_gpu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Radii shrink one block later than on the CPU, which matters little."""
    monkeypatch.setattr(pair_blocks, "SIZE_CLASSES", (4, 16))
    graphs = labelled(150)
    found = nearest(graphs, top=1, alpha=0.5, device="meta")
    assert on_gpu.solved == found.num_solved < 0.2 * found.num_pairs
    assert found.num_solved < 1.1 * nearest(graphs, top=1, alpha=0.5).num_solved


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_continued_from_a_checkpoint_on_a_gpu(share: float, on_gpu: StandIn, tmp_path: Path) -> None:
    graphs, path = labelled(30), tmp_path / "distances"
    whole = nearest(graphs, top=3, alpha=0.5, checkpoint=path, device="meta")
    content, blocks = path.read_bytes(), on_gpu.begun
    values = whole.num_solved
    path.write_bytes(content[: len(content) - 8 * (values - int(share * values))])
    on_gpu.begun = 0
    again = nearest(graphs, top=3, alpha=0.5, checkpoint=path, device="meta")
    assert torch.equal(again.indices, whole.indices)
    assert torch.equal(again.distances, whole.distances)
    assert again.num_solved == values
    assert path.read_bytes() == content
    assert (on_gpu.begun == blocks) == (share == 0)
    assert on_gpu.begun == 0 or share < 1
    with pytest.raises(ValueError, match=r"checkpoint: .* of other graphs or options"):
        nearest(graphs, top=3, alpha=0.5, checkpoint=path)


def test_bad_input_is_named() -> None:
    graphs = random_graphs()
    with pytest.raises(ValueError, match="top: must be at most 6, the number of graphs to choose from, got 7"):
        nearest(graphs, top=7, alpha=0.5)
    with pytest.raises(ValueError, match="top: must be at least 1, got 0"):
        nearest(graphs, top=0, alpha=0.5)
    with pytest.raises(ValueError, match="device: expected 'cpu' or 'cuda', got 'tpu'"):
        nearest(graphs, top=1, alpha=0.5, device="tpu")
    assert nearest(graphs, graphs, top=7, alpha=0.5).indices.shape == (7, 7)

"""All pairs: what one pair gives alone, whatever the order of lists and nodes, and a call that was killed goes on."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import ot as pot
import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.ot.ragged_graphs import SIZES, alone, matrix, random_graphs, renumbered
from tfgw.datasets import from_data_list
from tfgw.ot import GraphBatch, graph_lists, nearest, pair_solver, pairwise
from tfgw.ot.graph_lists import read_lists
from tfgw.ot.pair_journal import PairJournal

KINDS = ("sparse", "weighted", "directed", "dense")


def as_batch(graphs: list[Data]) -> GraphBatch:
    flat = [graph.clone() for graph in graphs]
    for graph in flat:
        if "structure" in graph:
            graph.structure = graph.structure.flatten()
    batch = Batch.from_data_list(flat)
    names = ("edge_index", "edge_weight", "node_weights", "structure")
    return GraphBatch(batch.x, batch=batch.batch, **{name: batch[name] for name in names if name in batch})


@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_each_pair_is_that_of_fgw_with_the_smaller_graph_as_template(kind: str, alpha: float) -> None:
    graphs = random_graphs(kind)
    found = pairwise(graphs, alpha=alpha, canonical=False)
    assert found.shape == (7, 7)
    assert found.dtype == torch.float64
    for i, first in enumerate(graphs):
        for j, second in enumerate(graphs):
            if len(first.x) > len(second.x):
                assert found[i, j] == found[j, i] == alone(first, second, alpha)
    both = {alone(graphs[1], graphs[6], alpha), alone(graphs[6], graphs[1], alpha)}  # of four nodes each
    assert float(found[1, 6]) in both
    assert (found.diagonal() == 0).all()
    assert torch.equal(found, found.T)


@pytest.mark.parametrize("has_collisions", [False, True])
def test_rows_are_numbered_in_sorted_order(has_collisions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    if has_collisions:
        monkeypatch.setattr(graph_lists, "_hashes", lambda rows: np.zeros(len(rows)))
    for rows in (np.eye(37)[rng.integers(0, 37, 90)], rng.integers(-2, 3, (80, 3)) / 7, rng.normal(size=(9, 4))):
        _, expected = np.unique(rows, axis=0, return_inverse=True)
        assert graph_lists._row_numbers(rows).tolist() == expected.reshape(-1).tolist()
    assert graph_lists._row_numbers(np.zeros((5, 0))).tolist() == [0] * 5


def test_nodes_with_equal_features_are_merged_where_structure_does_not_count() -> None:
    """Labels 0, 0, 1 with weights 0.2, 0.3, 0.5 are two nodes of weight 0.5 each: half of the mass moves by 3² to 4."""
    labels = torch.tensor([0, 0, 1, 4, 0, 4, 0, 4, 0, 1, 0], dtype=torch.float64)[:, None]
    weights = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    first, second, third = (
        Data(x=x, node_weights=h)
        for x, h in (
            (labels[:3], weights),
            (labels[3:9], torch.full((6,), 1 / 6, dtype=torch.float64)),
            (labels[9:], torch.full((2,), 1 / 2, dtype=torch.float64)),
        )
    )
    (parts,) = read_lists([first, second, third], None, features_only=True)
    assert [len(part.x) for part in parts] == [2, 2, 2]
    found = pairwise([first, second, third], alpha=0)
    assert float(found[0, 1]) == pytest.approx(0.5 * 9, rel=1e-14)
    assert float(found[0, 2]) == 0
    structured = [Data(x=graph.x, edge_index=torch.tensor([[0, 1], [1, 0]])) for graph in (first, second)]
    assert [len(part.x) for part in read_lists(structured, None, features_only=False)[0]] == [3, 6]


def test_nodes_without_features_are_one_node_where_structure_does_not_count() -> None:
    graphs = [Data(x=torch.zeros(n, 0)) for n in (3, 5)]
    assert pairwise(graphs, alpha=0).tolist() == [[0, 0], [0, 0]]


def test_wasserstein_without_structure() -> None:
    with_edges, without = random_graphs(), random_graphs()
    for graph in without:
        del graph.edge_index
    found = pairwise(without, alpha=0)
    assert torch.equal(pairwise(with_edges, alpha=0.0), found)
    for i, j in ((0, 2), (5, 1), (3, 4)):
        cost = pot.dist(without[i].x.numpy(), without[j].x.numpy())
        assert float(found[i, j]) == pytest.approx(pot.emd2([], [], cost), abs=1e-12)


@pytest.mark.parametrize(("node_cost", "metric"), [("euclidean", "euclidean"), ("hamming", "hamming")])
def test_other_costs_between_nodes(node_cost: str, metric: str) -> None:
    graphs = [Data(x=graph.x.round()) for graph in random_graphs()]
    found = pairwise(graphs, alpha=0, node_cost=node_cost)
    for i in range(7):
        for j in range(7):
            cost = pot.dist(graphs[i].x.numpy(), graphs[j].x.numpy(), metric=metric)
            assert float(found[i, j]) == pytest.approx(pot.emd2([], [], cost), abs=1e-12)


def nested_labels(sizes: tuple[int, ...] = (4, 9, 6, 1, 7, 12)) -> list[Data]:
    """Random weights and labels in three columns, each of which refines the one before."""
    rng = np.random.default_rng(0)
    graphs = []
    for n in sizes:
        labels = np.cumsum([rng.integers(3, size=n) * 10**k for k in (4, 2, 0)], axis=0)
        h = rng.random(n)
        graphs.append(Data(x=torch.from_numpy(labels.T).double(), node_weights=torch.from_numpy(h / h.sum())))
    return graphs


@pytest.mark.parametrize("columns", [[0, 1, 2], [2], [0, 2], [2, 1, 0], [1, 2, 1]])
def test_labels_have_the_optimal_value(columns: list[int]) -> None:
    """Nested labels have a closed form; the last two cases are not nested."""
    graphs = [Data(x=graph.x[:, columns], node_weights=graph.node_weights) for graph in nested_labels()]
    found = pairwise(graphs, alpha=0, node_cost="hamming")
    assert float(found.min()) == 0
    assert float(found.max()) > 0.5
    for i, j in zip(*np.triu_indices(len(graphs), 1), strict=True):
        cost = pot.dist(graphs[i].x.numpy(), graphs[j].x.numpy(), metric="hamming")
        expected = pot.emd2(graphs[i].node_weights.numpy(), graphs[j].node_weights.numpy(), cost)
        assert float(found[i, j]) == pytest.approx(expected, abs=1e-12)


def test_nested_labels_do_not_depend_on_order_or_other_graphs() -> None:
    graphs = nested_labels()
    found = pairwise(graphs, alpha=0, node_cost="hamming", num_threads=2)
    order = torch.tensor([3, 5, 0, 2])
    some = [graphs[number] for number in order]
    assert torch.equal(pairwise(some, graphs, alpha=0, node_cost="hamming", num_threads=1), found[order])
    reversed_nodes = [Data(x=graph.x.flip(0), node_weights=graph.node_weights.flip(0)) for graph in graphs]
    assert torch.equal(pairwise(reversed_nodes, alpha=0, node_cost="hamming"), found)


def test_pot_reaches_the_same_values_on_average() -> None:
    """From the same start; both are local minima, of which there are few where features weigh most."""
    graphs = random_graphs(seed=3, sizes=(5, 8, 12, 9, 14, 6, 10, 7))
    found = pairwise(graphs, alpha=0.05, canonical=False)
    ours, theirs = [], []
    for i, j in zip(*np.triu_indices(len(graphs), 1), strict=True):
        large, small = sorted((graphs[i], graphs[j]), key=lambda graph: -len(graph.x))
        cost = pot.dist(large.x.numpy(), small.x.numpy())
        C, D = matrix(large).numpy(), matrix(small).numpy()
        theirs.append(float(pot.gromov.fused_gromov_wasserstein2(cost, C, D, alpha=0.05)))
        ours.append(float(found[i, j]))
    assert np.mean(np.isclose(ours, theirs, rtol=1e-5)) > 0.8
    assert np.mean(ours) <= np.mean(theirs) * 1.001


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_lists_and_nodes_changes_no_bit(kind: str) -> None:
    graphs = random_graphs(kind, labels=1)
    for graph in graphs:
        graph.x = torch.ones_like(graph.x)  # nothing but structure tells nodes apart
    whole = pairwise(graphs, alpha=0.5)
    order = [3, 0, 6, 2, 5, 1, 4]
    others = [renumbered(graphs[i], seed=i) for i in order]
    assert torch.equal(pairwise(others, alpha=0.5), whole[order][:, order])
    assert torch.equal(pairwise(graphs[:3], others[2:], alpha=0.5), whole[:3][:, order[2:]])
    assert torch.equal(pairwise(others[2:], graphs[:3], alpha=0.5), whole[:3][:, order[2:]].T)


def test_renumbered_graphs_are_at_distance_zero_and_compared_once() -> None:
    graphs = random_graphs()
    copies = [renumbered(graph, seed=5) for graph in graphs]
    found = pairwise(graphs, copies, alpha=0.5)
    assert (found.diagonal() == 0).all()
    assert torch.equal(found, found.T)
    assert torch.equal(found, pairwise(graphs, alpha=0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_and_a_list_are_the_same(kind: str) -> None:
    graphs = random_graphs(kind)
    assert torch.equal(pairwise(as_batch(graphs), alpha=0.4), pairwise(graphs, alpha=0.4))
    assert torch.equal(pairwise(as_batch(graphs), graphs[1:4], alpha=0.4), pairwise(graphs, alpha=0.4)[:, 1:4])


def test_datasets_and_iterators() -> None:
    dataset = from_data_list(random_graphs())
    graphs = list(dataset)
    expected = pairwise(graphs, alpha=0.4)
    assert torch.equal(pairwise(dataset, alpha=0.4), expected)
    assert torch.equal(pairwise(iter(graphs), tuple(graphs), alpha=0.4), expected)
    assert torch.equal(nearest(dataset, dataset, top=1, alpha=0.4).indices[:, 0], torch.arange(7))


def test_edges_without_weights_are_a_set() -> None:
    graphs, again = random_graphs(), random_graphs()
    for graph in again:
        loops = torch.arange(len(graph.x)).expand(2, -1)
        graph.edge_index = torch.cat([graph.edge_index, graph.edge_index[:, ::2], loops], dim=1)
    assert torch.equal(pairwise(again, alpha=0.5), pairwise(graphs, alpha=0.5))


def test_weights_of_an_edge_that_is_listed_twice_add_up() -> None:
    graphs, again = random_graphs("weighted"), random_graphs("weighted")
    for graph in again:
        graph.edge_index = torch.cat([graph.edge_index, graph.edge_index], dim=1)
        graph.edge_weight = torch.cat([0.25 * graph.edge_weight, 0.75 * graph.edge_weight])
    torch.testing.assert_close(pairwise(again, alpha=0.5), pairwise(graphs, alpha=0.5), rtol=1e-12, atol=1e-12)


def test_listed_pairs() -> None:
    graphs = random_graphs()
    whole = pairwise(graphs, alpha=0.5)
    listed = [(0, 3), (3, 0), (2, 2), (6, 1), (0, 3)]
    rows, columns = np.array(listed).T
    assert torch.equal(pairwise(graphs, pairs=listed, alpha=0.5), whole[rows, columns])
    assert torch.equal(pairwise(graphs, graphs[2:], pairs=torch.tensor([[5, 0]]), alpha=0.5), whole[5, 2:3])
    assert pairwise(graphs, pairs=[], alpha=0.5).shape == (0,)


def test_options_reach_the_solver() -> None:
    graphs = random_graphs(sizes=(9, 12))
    options = {"n_starts": 6, "start_kinds": ("anchored", "perturbed"), "max_iter": 50, "tol": 1e-6}
    expected = alone(graphs[1], graphs[0], 0.9, **options)
    assert float(pairwise(graphs, alpha=0.9, canonical=False, **options)[0, 1]) == expected
    assert expected != alone(graphs[1], graphs[0], 0.9)


def test_threads_change_no_bit() -> None:
    graphs = random_graphs(sizes=tuple(range(3, 23)))
    assert torch.equal(pairwise(graphs, alpha=0.5, num_threads=1), pairwise(graphs, alpha=0.5, num_threads=3))


def test_chunks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(sizes=tuple(range(3, 23)))
    whole = pairwise(graphs, alpha=0.5)
    monkeypatch.setattr(pair_solver, "ENTRIES", 1000)
    monkeypatch.setattr(pair_solver.PairGrid.blocks, "__defaults__", (50,))
    assert torch.equal(pairwise(graphs, alpha=0.5), whole)


def test_a_single_graph() -> None:
    assert torch.equal(pairwise(random_graphs()[:1], alpha=0.5), torch.zeros(1, 1, dtype=torch.float64))


def test_progress_is_shown_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    pairwise(random_graphs(), alpha=0.5)
    assert capsys.readouterr().err == ""
    pairwise(random_graphs(), alpha=0.5, progress_bar=True)
    assert "21.0/21.0" in capsys.readouterr().err


class TestCheckpoint:
    def test_values_come_from_the_file(self, tmp_path: Path) -> None:
        graphs, path = random_graphs(), tmp_path / "folder" / "distances"
        whole = pairwise(graphs, alpha=0.5, checkpoint=path)
        size = path.stat().st_size
        values = np.frombuffer(path.read_bytes()[size - 21 * 8 :])
        path.write_bytes(path.read_bytes()[: size - 21 * 8] + (values + 1).tobytes())
        changed = pairwise(graphs, alpha=0.5, checkpoint=path)
        assert torch.equal(changed[whole > 0], whole[whole > 0] + 1)

    @pytest.mark.parametrize("lost", [1, 8, 37, 21 * 8 - 1, 21 * 8 + 3, 21 * 8 + 40])
    def test_what_a_crash_cut_off_is_solved_again(self, tmp_path: Path, lost: int) -> None:
        graphs, path = random_graphs(), tmp_path / "distances"
        whole = pairwise(graphs, alpha=0.5, checkpoint=path)
        content = path.read_bytes()
        path.write_bytes(content[:-lost])
        assert torch.equal(pairwise(graphs, alpha=0.5, checkpoint=path), whole)
        assert path.read_bytes() == content

    def test_another_problem_is_refused(self, tmp_path: Path) -> None:
        graphs, path = random_graphs(), tmp_path / "distances"
        pairwise(graphs, alpha=0.5, checkpoint=path)
        changes: list[dict[str, Any]] = [
            {"alpha": 0.6}, {"n_starts": 2}, {"tol": 1e-6}, {"others": graphs}, {"pairs": [(0, 1)]},
            {"graphs": graphs[::-1]}, {"graphs": graphs[1:]}, {"graphs": random_graphs(seed=1)},
        ]  # fmt: skip
        for change in changes:
            with pytest.raises(ValueError, match=r"checkpoint: .* of other graphs or options"):
                pairwise(**{"graphs": graphs, "alpha": 0.5, "checkpoint": path, **change})
        path.write_text("something else")
        with pytest.raises(ValueError, match=r"checkpoint: .* is not a checkpoint"):
            pairwise(graphs, alpha=0.5, checkpoint=path)

    def test_a_folder_has_a_file_for_each_problem(self, tmp_path: Path) -> None:
        graphs = random_graphs()
        for alpha in (0.2, 0.7, 0.2):
            assert torch.equal(pairwise(graphs, alpha=alpha, checkpoint=tmp_path), pairwise(graphs, alpha=alpha))
        assert len(list(tmp_path.iterdir())) == 2

    def test_calls_at_the_same_time_write_the_same(self, tmp_path: Path) -> None:
        values = np.random.default_rng(0).random(7)
        first, second = (PairJournal(tmp_path / "distances", b"digest") for _ in range(2))
        first.append(values[:3])
        second.append(values[:2])
        first.append(values[3:])
        second.append(values[2:5])
        np.testing.assert_array_equal(PairJournal(tmp_path / "distances", b"digest").take(9), values)

    def test_killed_and_continued(self, tmp_path: Path) -> None:
        script = (
            "import sys\n"
            "from tests.ot.ragged_graphs import random_graphs\n"
            "from tfgw.ot import pairwise\n"
            "from tfgw.ot.pair_solver import PairGrid\n"
            "PairGrid.blocks.__defaults__ = (60,)\n"
            "pairwise(random_graphs(sizes=[20] * 60), alpha=0.9, n_starts=3, checkpoint=sys.argv[1])\n"
        )
        path = tmp_path / "distances"
        process = subprocess.Popen([sys.executable, "-c", script, str(path)], cwd=Path(__file__).parents[2])
        while not path.exists() or path.stat().st_size < 1000:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        kept = path.read_bytes()
        assert len(kept) < 60 * 59 // 2 * 8
        graphs = random_graphs(sizes=[20] * 60)
        continued = pairwise(graphs, alpha=0.9, n_starts=3, checkpoint=path)
        assert path.read_bytes().startswith(kept)
        assert torch.equal(continued, pairwise(graphs, alpha=0.9, n_starts=3))


def test_ctrl_c_stops_within_a_second() -> None:
    script = (
        "import signal\n"
        "from tests.ot.ragged_graphs import random_graphs\n"
        "from tfgw.ot import pairwise\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "graphs = random_graphs(sizes=(60,) * 200)\n"
        "print('started', flush=True)\n"
        "try:\n"
        "    pairwise(graphs, alpha=0.9, n_starts=64)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    folder = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - began < 5  # on a busy machine
    process.wait()


def changed(number: int, kind: str = "weighted", **attributes: Any) -> list[Data]:
    graphs = random_graphs(kind)
    for name, value in attributes.items():
        graphs[number][name] = value
    return graphs


def batch_of(edge_index: Any = ((0,), (1,)), **given: Any) -> GraphBatch:
    """Three graphs of 3, 2 and 2 nodes."""
    edges = None if edge_index is None else torch.tensor(edge_index)
    return GraphBatch(torch.ones(7, 3), batch=torch.tensor([0, 0, 0, 1, 1, 2, 2]), edge_index=edges, **given)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no list": ({"graphs": torch.zeros(3)}, r"graphs: expected a list of graphs or a GraphBatch, got Tensor"),
    "one graph": ({"graphs": random_graphs()[0]}, r"graphs: expected a list of graphs or a GraphBatch, got Data"),
    "a batch": (
        {"graphs": Batch.from_data_list(random_graphs())},
        r"graphs: expected a list of graphs or a GraphBatch, got DataBatch",
    ),
    "a list of numbers": ({"graphs": [1, 2]}, r"x: graph 0 has no x"),
    "empty list": ({"graphs": []}, r"graphs: an empty list"),
    "empty others": ({"others": []}, r"others: an empty list"),
    "no x": ({"graphs": changed(2, x=None)}, r"x: graph 2 has no x"),
    "list": ({"graphs": changed(2, x=[1.0, 2.0])}, r"x: graph 2 has a list where a dense tensor of real numbers is"),
    "sparse": ({"graphs": changed(2, x=torch.eye(11).to_sparse())}, r"x: graph 2 has a tensor of .*sparse_coo where"),
    "NaN": ({"graphs": changed(4, x=torch.full((6, 3), torch.nan))}, r"x: graph 4 has a feature that is not finite"),
    "NaN in others": ({"others": changed(4, x=torch.full((6, 3), torch.nan))}, r"others: x: graph 4 has a feature"),
    "flat features": ({"graphs": changed(2, x=torch.ones(11))}, r"x: graph 2 has features of shape \(11,\), expected"),
    "columns": ({"graphs": changed(1, x=torch.ones(4, 5))}, r"x: graph 1 has 5 features per node, but graph 0 has 3"),
    "other columns": (
        {"others": [Data(x=torch.ones(2, 4), edge_index=torch.zeros(2, 0, dtype=torch.int64))]},
        r"others: x: graph 0 has 4 features per node, but those of graphs have 3",
    ),
    "no edges": ({"graphs": random_graphs("none")}, r"edge_index: graph 0 has no structure; alpha=0"),
    "some edges": ({"graphs": changed(3, edge_index=None)}, r"edge_index: graph 3 has no edge_index, but graph 0 has"),
    "edge outside": (
        {"graphs": changed(1, "sparse", edge_index=torch.tensor([[0], [4]]))},
        r"edge_index: graph 1 has an edge to a node outside 0 to 3",
    ),
    "real edges": (
        {"graphs": changed(1, edge_index=torch.zeros(2, 5))},
        r"edge_index: graph 1 has torch.float32 of shape \(2, 5\), expected torch.int64 of shape \(2, num_edges\)",
    ),
    "edges in rows": (
        {"graphs": changed(1, edge_index=torch.zeros(5, 2, dtype=torch.int64))},
        r"edge_index: graph 1 has torch.int64 of shape \(5, 2\)",
    ),
    "empty graph of a batch": ({"graphs": batch_of(batch_size=4)}, r"batch: graph 3 has no nodes"),
    "edge out of a batch": (
        {"graphs": batch_of(edge_index=[[0], [7]])}, r"edge_index: points to a node outside 0 to 6"
    ),
    "edge between graphs": (
        {"graphs": batch_of(edge_index=[[0, 1], [1, 5]])}, r"edge_index: edge 1 joins graph 0 and graph 2"
    ),
    "structure of a batch": (
        {"graphs": batch_of(edge_index=None, structure=torch.ones(20))},
        r"structure: has 20 entries, but graphs of these sizes need 17",
    ),
    "edge weights": (
        {"graphs": changed(2, edge_weight=torch.ones(2))}, r"edge_weight: graph 2 has 2 weights for \d+ edges"
    ),
    "some weights": (
        {"graphs": changed(2, edge_weight=None)}, r"edge_weight: graph 2 has no edge_weight, but graph 0 has one"
    ),
    "number of node weights": (
        {"graphs": changed(1, node_weights=torch.full((3,), 0.25))}, r"node_weights: graph 1 has 3 weights for 4 nodes"
    ),
    "node weights": (
        {"graphs": changed(1, node_weights=torch.full((4,), 0.3))}, r"node_weights: the weights of graph 1 sum to 1.2"
    ),
    "structure": (
        {"graphs": changed(5, "dense", structure=torch.ones(80))},
        r"structure: graph 5 has 80 entries for 9 nodes, expected 81",
    ),
    "alpha": ({"alpha": 1.5}, r"alpha: must lie in \[0, 1\], but is 1.5"),
    "alpha tensor": ({"alpha": torch.tensor([0.5, 0.6])}, r"alpha: expected a number"),
    "tol": ({"tol": -1.0}, r"tol: must not be negative"),
    "starts": ({"start_kinds": ["random"]}, r"start_kinds: 'random' is none of"),
    "threads": ({"num_threads": 0}, r"num_threads: must be at least 1"),
    "node cost": ({"node_cost": "cosine"}, r"node_cost: must be one of"),
    "node cost and structure": ({"node_cost": "hamming"}, r"node_cost: 'hamming' compares features only; give alpha=0"),
    "device": ({"device": "gpu"}, r"device: expected 'cpu' or 'cuda', got 'gpu'"),
    "no device": ({"device": 1.5}, r"device: expected 'cpu' or 'cuda', got 1.5"),
    "other device": ({"device": "meta"}, r"device: expected 'cpu' or 'cuda', got 'meta'"),
    "pairs": ({"pairs": [(0, 1, 2)]}, r"pairs: expected integers of shape \(num_pairs, 2\)"),
    "pair outside": ({"pairs": [(0, 1), (2, 7)]}, r"pairs: pair 1 has graph 7, but there are 7 graphs"),
    "real pairs": ({"pairs": [(0.0, 1.0)]}, r"pairs: expected integers"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    change, message = BAD[name]
    given: dict[str, Any] = {"graphs": random_graphs("weighted"), "alpha": 0.5, **change}
    with pytest.raises(ValueError, match=message):
        pairwise(**given)


def test_sizes_of_these_graphs() -> None:
    assert len(SIZES) == 7  # the numbers above

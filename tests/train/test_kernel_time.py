"""The estimated time to train a kernel machine."""

import os

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, load
from tfgw.train import Preprocessing, kernel_time
from tfgw.train.kernel_time import AUTO_SECONDS, count_distinct_degrees, estimated_seconds

FOLDER = os.environ.get("TFGW_DATA")


def dataset(*graphs: nx.Graph, feature: float = 1.0) -> GraphDataset:
    converted = [Data(x=torch.full((len(graph), 1), feature), edge_index=edges_of(graph)) for graph in graphs]
    return GraphDataset.from_graphs(converted, name="some")


def edges_of(graph: nx.Graph) -> torch.Tensor:
    return torch.tensor([(a, b) for edge in graph.edges for a, b in (edge, edge[::-1])]).T


def test_nodes_with_equal_averaged_degrees_count_once() -> None:
    """Four in a path of seven nodes, whose ends are seen from three steps away; the order of nodes does not matter."""
    shuffled = nx.relabel_nodes(nx.path_graph(7), dict(enumerate([3, 0, 5, 1, 6, 2, 4])))
    graphs = dataset(nx.cycle_graph(5), nx.star_graph(8), nx.path_graph(7), shuffled, nx.complete_graph(6))
    assert count_distinct_degrees(graphs) == [1, 2, 4, 4, 1]


@pytest.mark.parametrize(
    ("feature", "parts"),
    [
        # four levels each of labels, labels with cycles, degrees, and labels with structure
        (1.0, {"pair": 16 * 32, "ridge": 16 * 512, "degrees": 4 * 8**2 / 2, "structure": 4 * (8 * 64) ** 2 / 2}),
        # four levels each of averages, degrees, and averages with structure
        (0.5, {"pair": 12 * 32, "ridge": 12 * 512, "degrees": 4 * 8**2 / 2, "structure": 4 * (8 * 64) ** 2 / 2,
               "averages": 4 * (8 * 64) ** 2 / 2}),
    ],
)  # fmt: skip
def test_time_is_a_sum_over_distances(monkeypatch: pytest.MonkeyPatch, feature: float, parts: dict[str, float]) -> None:
    """Eight cycles of 16 nodes, which are all alike: 8² / 2 pairs."""
    graphs = dataset(*[nx.cycle_graph(16)] * 8, feature=feature)
    for part in ("pair", "ridge", "degrees", "structure", "averages"):
        monkeypatch.setattr(kernel_time, "SECONDS_OF_PAIR", float(part == "pair"))
        ridges = {"decomposition": float(part == "ridge"), "factorisations": np.nan}
        monkeypatch.setattr(kernel_time, "SECONDS_OF_RIDGE", ridges)
        works = dict.fromkeys(("degrees", "structure", "averages"), 0.0)
        monkeypatch.setattr(kernel_time, "SECONDS_OF_WORK", works | ({part: 1.0} if part in works else {}))
        assert estimated_seconds(graphs) == parts.get(part, 0.0), part


def test_clustering_counts_where_there_are_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_time, "SECONDS_OF_WORK", dict.fromkeys(("degrees", "structure", "averages"), 0.0))
    monkeypatch.setattr(kernel_time, "SECONDS_OF_RIDGE", {"decomposition": 1.0, "factorisations": 10.0})
    monkeypatch.setattr(kernel_time, "SECONDS_OF_PAIR", 0.0)

    def regressions() -> list[float]:
        return [estimated_seconds(dataset(*[graph] * 7)) / 7**3 for graph in (nx.cycle_graph(4), nx.complete_graph(4))]

    assert regressions() == [16, 16]
    monkeypatch.setattr(kernel_time, "LARGEST_DECOMPOSITION", 6)
    assert regressions() == [170, 180]  # one more on all distances, and one on those between clustering coefficients


def test_many_graphs_are_factorised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above ``LARGEST_DECOMPOSITION`` graphs, a ridge regression takes less of the third power of their number."""
    graphs = dataset(*[nx.cycle_graph(16)] * 8)
    times = []
    for most in (8, 7):
        monkeypatch.setattr(kernel_time, "LARGEST_DECOMPOSITION", most)
        times.append(estimated_seconds(graphs))
    ridge = kernel_time.SECONDS_OF_RIDGE
    expected = 512 * (16 * ridge["decomposition"] - 17 * ridge["factorisations"])
    assert times[0] - times[1] == pytest.approx(expected)
    assert times[0] > times[1]


@pytest.mark.skipif(not FOLDER, reason="TFGW_DATA names no folder with the real datasets")
@pytest.mark.parametrize(
    ("name", "seconds"),
    [("ENZYMES", 66), ("IMDB-BINARY", 40), ("IMDB-MULTI", 175), ("PROTEINS_full", 552), ("NCI1", 368), ("COLLAB", 892)],
)
def test_estimates_are_about_right(name: str, seconds: float) -> None:
    """CPU time of ``benchmarks/default_fit.py``. All datasets of the paper are below the limit."""
    graphs = load(name, data_dir=FOLDER)
    found = estimated_seconds(Preprocessing.fit(graphs)(graphs))
    assert seconds / 2 < found < 2 * seconds
    assert found < AUTO_SECONDS

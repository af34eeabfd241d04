"""What a kernel machine compares by default."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from tfgw.estimators import TFGWKernelClassifier
from tfgw.nn import KernelConfig
from tfgw.nn.graph_distance import NodeDescription
from tfgw.train import kernel_pipeline
from tfgw.train.kernel_pipeline import STRUCTURE_WORK, default_alphas, described_graphs, with_description


def test_structures_are_compared_unless_that_takes_long() -> None:
    """PROTEINS_full has 1,113 graphs of 39 nodes on average, NCI1 4,110 of 30."""
    assert default_alphas([39] * 1113) == (0.0, 0.5)
    assert default_alphas([30] * 4110) == (0.0,)


def test_work_is_the_sum_over_pairs() -> None:
    """Two groups of graphs with 16 and 81 nodes: half the square of Σ n^1.5 = 64 a + 729 b."""
    a, b = 1000, 525
    assert (64 * a + 729 * b) ** 2 / 2 < STRUCTURE_WORK < (64 * a + 729 * (b + 1)) ** 2 / 2
    assert default_alphas([16] * a + [81] * b) == (0.0, 0.5)
    assert default_alphas([16] * a + [81] * (b + 1)) == (0.0,)


def test_a_classifier_follows_the_rule_unless_it_is_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [nx.cycle_graph(n) for n in (5, 6, 7)] + [nx.star_graph(n) for n in (4, 8, 9)]
    labels = [0, 0, 0, 1, 1, 1]
    assert TFGWKernelClassifier(levels=[1]).fit(graphs, labels).model_.config.alphas == (0.0, 0.5)
    monkeypatch.setattr(kernel_pipeline, "STRUCTURE_WORK", 100.0)
    assert TFGWKernelClassifier(levels=[1]).fit(graphs, labels).model_.config.alphas == (0.0,)
    assert TFGWKernelClassifier(levels=[1], alphas=[0.3]).fit(graphs, labels).model_.config.alphas == (0.3,)


def test_each_distance_comes_with_the_features_that_it_compares() -> None:
    graphs = [Data(x=torch.eye(n, 9).double(), edge_index=torch.tensor([[0, 1], [1, 0]])) for n in (4, 2, 7)]
    config = KernelConfig(in_channels=9, out_channels=2, discrete=True, levels=(1, 3), alphas=(0.0, 0.4))
    found = list(described_graphs(graphs, config))
    assert [(kind.nodes.level, kind.alpha, kind.nodes.degrees) for kind, _ in found] == [
        *((1, 0.0, False), (1, 0.4, False), (3, 0.0, False), (3, 0.4, False)),
        *((1, 0.0, True), (3, 0.0, True)),
    ]
    for kind, described in found:
        for graph, one in zip(graphs, described, strict=True):
            assert torch.equal(one.x, kind.nodes.features(graph.x, graph.edge_index, discrete=True))
        assert kind.node_cost == ("euclidean" if kind.nodes.degrees else "squared_euclidean")


@pytest.mark.parametrize("degrees", [True, False])
@pytest.mark.parametrize("discrete", [True, False])
def test_graphs_are_described_together_as_each_alone(discrete: bool, degrees: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for n in (4, 1, 7, 3):  # one without edges
        linked = (torch.rand(n, n, generator=generator) < 0.6).triu(1)
        x = torch.randint(0, 2, (n, 5), generator=generator).double()
        if not discrete:
            x = x + torch.rand(n, 5, generator=generator, dtype=torch.float64)
        graphs.append(Data(x=x, edge_index=(linked | linked.T).nonzero().T, node_weights=torch.full((n,), 1 / n)))
    nodes = NodeDescription(2, degrees=degrees)
    for graph, described in zip(graphs, with_description(graphs, nodes, discrete=discrete), strict=True):
        assert torch.equal(described.x, nodes.features(graph.x, graph.edge_index, discrete=discrete))
        assert torch.equal(described.edge_index, graph.edge_index)
        assert torch.equal(described.node_weights, graph.node_weights)
    assert with_description([], nodes, discrete=discrete) == []

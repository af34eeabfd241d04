"""What a kernel machine compares by default."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from tfgw.estimators import TFGWKernelClassifier
from tfgw.nn.refinement import refined_features
from tfgw.train import kernel_pipeline
from tfgw.train.kernel_pipeline import STRUCTURE_WORK, default_alphas, refined_graphs


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


@pytest.mark.parametrize("discrete", [True, False])
def test_graphs_are_refined_together_as_each_alone(discrete: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for n in (4, 1, 7, 3):  # one without edges
        linked = (torch.rand(n, n, generator=generator) < 0.6).triu(1)
        x = torch.randint(0, 2, (n, 5), generator=generator).double()
        if not discrete:
            x = x + torch.rand(n, 5, generator=generator, dtype=torch.float64)
        graphs.append(Data(x=x, edge_index=(linked | linked.T).nonzero().T, node_weights=torch.full((n,), 1 / n)))
    for graph, refined in zip(graphs, refined_graphs(graphs, 2, discrete=discrete), strict=True):
        assert torch.equal(refined.x, refined_features(graph.x, graph.edge_index, 2, discrete=discrete))
        assert torch.equal(refined.edge_index, graph.edge_index)
        assert torch.equal(refined.node_weights, graph.node_weights)
    assert refined_graphs([], 2, discrete=discrete) == []

"""What a kernel machine compares by default."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset
from tfgw.estimators import TFGWKernelClassifier
from tfgw.nn import KernelConfig
from tfgw.nn.graph_distance import Description, GraphDistance, NodeDescription
from tfgw.nn.kernel_model import Combination
from tfgw.train import kernel_pipeline
from tfgw.train.kernel_pipeline import (
    STRUCTURE_WORK,
    KernelTraining,
    default_alphas,
    described_graphs,
    kernel_config,
    train_kernel,
    with_description,
)


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


def test_further_levels_of_labels_are_compared_by_default_only() -> None:
    x, edges = torch.eye(3).double(), torch.tensor([[0, 1], [1, 0]])
    graphs, real = (GraphDataset.from_graphs([Data(x=x * f, edge_index=edges)], name="one") for f in (1, 0.5))
    config = kernel_config(graphs, 2)
    assert (config.levels, config.label_levels) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert [kind.nodes for kind in config.distances][-2:] == [("labels", 6), ("labels", 7)]
    for other in (
        kernel_config(graphs, 2, levels=[0, 1]),
        kernel_config(graphs, 2, alphas=[0.5]),
        kernel_config(real, 2),
    ):
        assert other.label_levels == ()


def test_cycles_are_compared_if_they_distinguish_nodes() -> None:
    def dataset(*graphs: nx.Graph, labels: int = 1, share: float = 1.0) -> GraphDataset:
        return GraphDataset.from_graphs(
            [
                Data(
                    x=share * torch.nn.functional.one_hot(torch.arange(len(graph)) % labels, labels).double(),
                    edge_index=torch.tensor([*graph.edges, *((b, a) for a, b in graph.edges)]).T,
                )
                for graph in graphs
            ],
            name="cycles",
        )

    ring, tree = nx.cycle_graph(6), nx.star_graph(4)
    config = kernel_config(dataset(ring, tree), 2, levels=[0, 2], degrees=False)
    assert [kind.nodes for kind in config.distances if kind.alpha == 0] == [
        *(("labels", 0), ("labels", 2)),
        *(("cycles", 0), ("cycles", 2)),
    ]
    assert not kernel_config(dataset(ring, tree), 2, cycles=False).cycles
    assert not kernel_config(dataset(tree), 2).cycles
    assert not kernel_config(dataset(ring, nx.cycle_graph(6)), 2).cycles
    assert kernel_config(dataset(ring, nx.cycle_graph(5), labels=2), 2).cycles
    assert not kernel_config(dataset(nx.star_graph(2), labels=3), 2).cycles
    assert not kernel_config(dataset(ring, tree, share=0.5), 2).cycles


def test_small_datasets_have_a_regression_per_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped negative eigenvalues make the leave-one-out error of the sum of all distances too small."""
    graphs = [Data(x=torch.ones(2, 1).double(), edge_index=torch.tensor([[0, 1], [1, 0]])) for _ in range(7)]
    dataset = GraphDataset.from_graphs(graphs, name="seven")
    assert kernel_config(dataset, 2).combine == "scores"
    assert kernel_config(dataset, 2, combine="distances").combine == "distances"
    monkeypatch.setattr(kernel_pipeline, "LARGEST_DECOMPOSITION", 7)
    assert kernel_config(dataset, 2).combine == "scores"
    monkeypatch.setattr(kernel_pipeline, "LARGEST_DECOMPOSITION", 6)
    assert kernel_config(dataset, 2).combine == "auto"


def test_clustering_is_compared_if_there_are_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_pipeline, "LARGEST_DECOMPOSITION", 0)

    def config(graph: nx.Graph, **options: Any) -> KernelConfig:
        edges = torch.tensor([*graph.edges, *((b, a) for a, b in graph.edges)]).T
        given = [Data(x=torch.ones(len(graph), 1).double(), edge_index=edges)]
        return kernel_config(GraphDataset.from_graphs(given, name="one"), 2, levels=[1], alphas=[0.0], **options)

    assert config(nx.complete_graph(4)).clustering is None
    assert config(nx.complete_graph(4), combine="scores").clustering is False
    assert config(nx.complete_graph(4), combine="scores", clustering=True).clustering is True
    assert config(nx.complete_graph(4), clustering=False).clustering is False
    assert config(nx.cycle_graph(4)).clustering is False
    assert config(nx.cycle_graph(4), clustering=True).clustering is False
    found = config(nx.complete_graph(4), clustering=True, cycles=False)
    assert [(kind.nodes, kind.alpha, kind.node_cost, str(kind)) for kind in found.distances[1:]] == [
        (("degrees", 1), 0.0, "euclidean", "level 1, degrees"),
        (("clustering", 0), 0.0, "euclidean", "level 0, clustering"),
    ]


def test_further_levels_are_kept_as_long_as_they_explain_more() -> None:
    """Each level has noisy distances: 4 and 5 have less noise than 0 to 3, 6 has more, and 7 comes too late."""
    rng, y = np.random.default_rng(0), torch.arange(40) % 2
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.eye(2).double(), edge_index=edges, y=one.reshape(1)) for one in y]
    dataset = GraphDataset.from_graphs(graphs, name="noise")
    noise, asked = {4: 0.3, 5: 0.4, 6: 2.0, 7: 0.0}, []

    def distances(described: list[Data], kind: GraphDistance) -> torch.Tensor:
        asked.append(kind.nodes.level)
        position = y.numpy() + noise.get(kind.nodes.level, 0.6) * rng.normal(size=40)
        return torch.from_numpy(np.abs(position[:, None] - position))

    config = kernel_config(dataset, 2, alphas=[0.0], degrees=False)
    found = train_kernel(dataset, config, task="classification", distances=distances)
    assert asked == [0, 1, 2, 3, 4, 5, 6]
    assert found.model.config.label_levels == (4, 5)
    assert found.model.coefficients.shape == (6, 40, 2)
    best = max(fit.explained for fit in found.fits[:4])
    assert all(best < fit.explained < 1 for fit in found.fits[4:])


@pytest.mark.parametrize(("interplay", "expected"), [(True, "distances"), (False, "scores")])
def test_distances_are_combined_where_that_is_clearly_better(
    interplay: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sign of a product, which neither factor explains alone, or two noisy measurements of the class."""
    monkeypatch.setattr(kernel_pipeline, "LARGEST_DECOMPOSITION", 0)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 70))
    y = (a * b > 0 if interplay else a > 0).astype(int)
    position = {0: a, 1: b} if interplay else {level: y + rng.normal(size=70) for level in (0, 1)}
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.eye(2).double(), edge_index=edges, y=torch.tensor([one])) for one in y]
    dataset = GraphDataset.from_graphs(graphs, name="positions")

    def distances(described: list[Data], kind: GraphDistance) -> torch.Tensor:
        position_of = position[kind.nodes.level]
        return torch.from_numpy(np.abs(position_of[:, None] - position_of))

    def trained(combine: Combination) -> KernelTraining:
        config = kernel_config(dataset, 2, levels=[0, 1], alphas=[0.0], degrees=False, combine=combine)
        return train_kernel(dataset, config, task="classification", distances=distances)

    found = trained("auto")
    assert found.model.config.combine == expected
    other = trained("distances" if interplay else "scores")
    assert torch.equal(found.left_out, other.left_out)
    assert found.model.rates.shape == (len(found.fits), 2)
    if interplay:
        accuracy = (found.left_out.argmax(1) == found.known).double().mean()
        assert accuracy > (trained("scores").left_out.argmax(1) == found.known).double().mean() + 0.2


@pytest.mark.parametrize(("interplay", "clustering"), [(True, True), (False, False)])
def test_clustering_is_only_compared_together_with_other_distances(
    interplay: bool, clustering: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class is the sign of a product of labels and clustering, or that of labels; clustering alone says nothing."""
    monkeypatch.setattr(kernel_pipeline, "LARGEST_DECOMPOSITION", 0)
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 70))
    y = (a * b > 0 if interplay else a > 0).astype(int)
    edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    graphs = [Data(x=torch.eye(3).double(), edge_index=edges, y=torch.tensor([one])) for one in y]
    dataset = GraphDataset.from_graphs(graphs, name="triangles")

    def distances(described: list[Data], kind: GraphDistance) -> torch.Tensor:
        position = b if kind.nodes.kind == "clustering" else a
        return torch.from_numpy(np.abs(position[:, None] - position))

    config = kernel_config(dataset, 2, levels=[0], alphas=[0.0], degrees=False, cycles=False)
    assert config.combine == "auto"
    found = train_kernel(dataset, config, task="classification", distances=distances)
    assert found.model.config.clustering is clustering
    assert found.model.rates.shape == (1, 1 + clustering)
    assert len(found.model.config.distances) == len(found.model.mean_distances) == 1 + clustering
    assert (found.left_out.argmax(1) == found.known).double().mean() > 0.8


@pytest.mark.parametrize(
    "given", [{"label_levels": (1, 5)}, {"label_levels": (4, 4)}, {"label_levels": (-1,)},
              {"label_levels": (4,), "features": "averages"}]
)  # fmt: skip
def test_invalid_label_levels(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^label_levels: "):
        KernelConfig(**{"in_channels": 2, "out_channels": 2, "features": "labels", "levels": (0, 1)} | given)


def test_unknown_combination() -> None:
    with pytest.raises(ValueError, match=r"^combine: must be one of scores, distances, auto, got 'product'"):
        KernelConfig(in_channels=2, out_channels=2, features="labels", combine="product")  # type: ignore[arg-type]


def test_each_distance_comes_with_the_features_that_it_compares() -> None:
    graphs = [Data(x=torch.eye(n, 9).double(), edge_index=torch.tensor([[0, 1], [1, 0]])) for n in (4, 2, 7)]
    config = KernelConfig(in_channels=9, out_channels=2, features="labels", levels=(1, 3), alphas=(0.0, 0.4))
    found = list(described_graphs(graphs, config))
    assert [(*kind.nodes, kind.alpha, kind.node_cost) for kind, _ in found] == [
        ("labels", 1, 0.0, "hamming"),
        ("codes", 1, 0.4, "squared_euclidean"),
        ("labels", 3, 0.0, "hamming"),
        ("codes", 3, 0.4, "squared_euclidean"),
        ("degrees", 1, 0.0, "euclidean"),
        ("degrees", 3, 0.0, "euclidean"),
        ("cycles", 1, 0.0, "hamming"),
        ("cycles", 3, 0.0, "hamming"),
        ("clustering", 0, 0.0, "euclidean"),
    ]
    for kind, described in found:
        for graph, one in zip(graphs, described, strict=True):
            assert torch.equal(one.x, kind.nodes.features(graph.x, graph.edge_index))


def test_distances_between_real_valued_features() -> None:
    config = KernelConfig(in_channels=9, out_channels=2, features="averages", levels=(0, 5), alphas=(0.0, 0.4))
    assert [(*kind.nodes, kind.alpha, kind.node_cost) for kind in config.distances] == [
        ("averages", 0, 0.0, "squared_euclidean"),
        ("averages", 0, 0.4, "squared_euclidean"),
        ("averages", 5, 0.0, "squared_euclidean"),
        ("averages", 5, 0.4, "squared_euclidean"),
        ("degrees", 0, 0.0, "euclidean"),
        ("degrees", 5, 0.0, "euclidean"),
        ("clustering", 0, 0.0, "euclidean"),
    ]


@pytest.mark.parametrize("kind", ["labels", "cycles", "codes", "averages", "degrees"])
def test_graphs_are_described_together_as_each_alone(kind: Description) -> None:
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for n in (4, 1, 7, 3):  # one without edges
        linked = (torch.rand(n, n, generator=generator) < 0.6).triu(1)
        x = torch.randint(0, 2, (n, 5), generator=generator).double()
        if kind == "averages":
            x = x + torch.rand(n, 5, generator=generator, dtype=torch.float64)
        graphs.append(Data(x=x, edge_index=(linked | linked.T).nonzero().T, node_weights=torch.full((n,), 1 / n)))
    nodes = NodeDescription(kind, 2)
    for graph, described in zip(graphs, with_description(graphs, nodes), strict=True):
        assert torch.equal(described.x, nodes.features(graph.x, graph.edge_index))
        assert torch.equal(described.edge_index, graph.edge_index)
        assert torch.equal(described.node_weights, graph.node_weights)
    assert with_description([], nodes) == []

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from tests.nn.graphs import CHANNELS, random_batch
from tfgw.nn import TFGWPooling, sample_templates
from tfgw.nn.batched_structure import batched_shortest_paths

NODES = 6


def labelled(seed: int, sizes: tuple[int, ...], labels: list[Any]) -> list[Data]:
    graphs = random_batch(seed, sizes, torch.float32).to_data_list()
    for graph, label in zip(graphs, labels, strict=True):
        graph.y = None if label is None else torch.tensor([label])
    return graphs


def matches(features: Tensor, structure: Tensor, graph: Data) -> bool:
    """Whether a template is this graph, node by node."""
    return (
        graph.num_nodes == len(features)
        and torch.equal(features, graph.x)
        and torch.equal(structure, to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0])
    )


def test_graphs_of_the_right_size_are_taken_as_they_are() -> None:
    graphs = labelled(0, (6, 6, 4, 6, 6, 7, 6), [0, 0, 0, 1, 1, 1, 0])
    templates = sample_templates(graphs, 4, NODES)
    assert templates.features.shape == (4, NODES, CHANNELS)
    assert templates.structure.shape == (4, NODES, NODES)
    assert templates.weights is None
    for k in range(4):
        wanted = [g for g in graphs if int(g.y) == k // 2]  # those of one class next to each other
        assert sum(matches(templates.features[k], templates.structure[k], g) for g in wanted) == 1
    assert not torch.equal(templates.features[0], templates.features[1])


def test_too_few_of_the_right_size_are_repeated_with_noise() -> None:
    graphs = labelled(1, (6, 5, 8, 6, 6), [0, 0, 0, 1, 1])
    templates = sample_templates(graphs, 6, NODES)
    first, second, third = templates.features[:3]
    assert torch.equal(first, graphs[0].x)
    for repeated in (second, third):
        noise = repeated - first
        assert 0 < float(noise.abs().max()) < 1
    assert not torch.equal(second, third)
    adjacency = templates.structure[0]
    for repeated in templates.structure[1:3]:
        assert not torch.equal(repeated, adjacency)
        assert torch.equal(repeated, repeated.mT)
        assert float(repeated.diagonal().abs().max()) == 0
        assert 0 <= float(repeated.min()) <= float(repeated.max()) <= 1
        assert float((repeated - adjacency).abs().max()) < 0.6
    assert bool(matches(templates.features[3], templates.structure[3], graphs[3])) != bool(
        matches(templates.features[3], templates.structure[3], graphs[4])
    )


def test_none_of_the_right_size_gives_random_graphs_of_the_mean_density() -> None:
    graphs = labelled(2, (5, 9, 7, 8), [0, 0, 0, 0])
    densities = [g.num_edges / (g.num_nodes * (g.num_nodes - 1)) for g in graphs]
    templates = sample_templates(graphs, 40, 20)
    assert sorted(set(templates.structure.flatten().tolist())) == [0.0, 1.0]
    assert torch.equal(templates.structure, templates.structure.mT)
    assert float(templates.structure.diagonal(dim1=1, dim2=2).abs().max()) == 0
    entries = templates.structure.mean() * 20 / 19
    assert float(entries) == pytest.approx(np.mean(densities), abs=0.03)
    points = torch.cat([g.x for g in graphs])
    low, high = points.amin(0), points.amax(0)
    assert bool(((templates.features >= low - 1e-6) & (templates.features <= high + 1e-6)).all())


def test_centres_repeat_where_there_are_few_distinct_features() -> None:
    graphs = labelled(3, (5, 9), [0, 0])
    for graph in graphs:
        graph.x = (graph.x[:, :1] > 0).float()
    features = sample_templates(graphs, 3, 7).features
    assert set(features.flatten().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(("count", "expected"), [(7, [3, 2, 2]), (3, [1, 1, 1]), (2, [1, 1, 0]), (1, [1, 0, 0])])
def test_classes_share_the_templates(count: int, expected: list[int]) -> None:
    graphs = labelled(4, (6,) * 12, [5, 2, 9] * 4)
    templates = sample_templates(graphs, count, NODES)
    owners = [
        next(int(g.y) for g in graphs if matches(templates.features[k], templates.structure[k], g))
        for k in range(count)
    ]
    assert [owners.count(label) for label in (2, 5, 9)] == expected
    assert owners == sorted(owners)


@pytest.mark.parametrize("labels", [[0.5, 1.5, 0.5], [[0, 1], [1, 1], [0, 0]], [None, None, None]])
def test_other_targets_make_one_class(labels: list[Any]) -> None:
    graphs = labelled(5, (6, 6, 6), labels)
    templates = sample_templates(graphs, 3, NODES)
    for graph in graphs:
        found = [matches(templates.features[k], templates.structure[k], graph) for k in range(3)]
        assert sum(found) == 1


def test_shortest_path_templates() -> None:
    graphs = labelled(6, (6, 5), [0, 0])
    structure = sample_templates(graphs, 3, NODES, structure="shortest_path").structure
    expected = batched_shortest_paths(graphs[0].edge_index, NODES).reshape(NODES, NODES)
    assert torch.equal(structure[0], expected)
    assert float(structure.min()) == 0
    assert float(structure[1].max()) > 1
    assert float((structure[1] - expected).abs().max()) > 0


class Encoder(nn.Module):
    """Two channels per node: its norm's running mean, and its degree."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(CHANNELS)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        degree = torch.bincount(edge_index[0], minlength=len(x)).to(x)
        return torch.stack([self.norm(x).sum(-1), degree], dim=-1)


def test_encoder_is_applied_once_and_left_as_it_was() -> None:
    graphs = labelled(7, (6, 6, 6), [0, 0, 1])
    encoder = Encoder()
    encoded = sample_templates(graphs, 3, NODES, encoder=encoder)
    raw = sample_templates(graphs, 3, NODES)
    assert encoded.features.shape == (3, NODES, 2)
    assert not encoded.features.requires_grad
    assert torch.equal(encoded.structure, raw.structure)
    assert torch.equal(encoded.features[..., 1], raw.structure.sum(-1))
    assert int(encoder.norm.num_batches_tracked) == 0
    assert encoder.training
    batch = raw.features.flatten(0, 1)
    expected = ((batch - batch.mean(0)) / (batch.var(0, correction=0) + encoder.norm.eps).sqrt()).sum(-1)
    torch.testing.assert_close(encoded.features[..., 0].flatten(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_the_seed_decides() -> None:
    graphs = labelled(8, (6, 6, 6, 5, 9), [0, 0, 0, 1, 1])
    one, same, other = (sample_templates(graphs, 5, NODES, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.features, same.features)
    assert torch.equal(one.structure, same.structure)
    assert not torch.equal(one.features, other.features)


@pytest.mark.parametrize("structure", ["adjacency", "shortest_path"])
def test_a_layer_takes_them(structure: str) -> None:
    graphs = labelled(9, (6, 5, 8, 6, 7), [0, 0, 0, 1, 1])
    templates = sample_templates(graphs, 5, NODES, structure=structure)
    layer = TFGWPooling(CHANNELS, 5, NODES, structure=structure)
    layer.set_templates(templates.structure, templates.features, templates.weights)
    before = layer.template_structure.clone()
    layer.project_()
    assert torch.equal(layer.template_structure, before)
    distances = layer(graphs[0].x, graphs[0].edge_index)
    assert float(distances[0, 0].detach()) == pytest.approx(0, abs=1e-6)


def weighted(sizes: tuple[int, ...]) -> list[Data]:
    """Graphs whose edges have weights of their own."""
    graphs = labelled(10, sizes, [0] * len(sizes))
    for number, graph in enumerate(graphs):
        adjacency = to_dense_adj(graph.edge_index, max_num_nodes=graph.num_nodes)[0].triu(1)
        weight = adjacency * torch.linspace(0.2 + number, 0.9 + number, adjacency.numel()).reshape(adjacency.shape)
        graph.edge_index = (weight + weight.mT).nonzero().T.contiguous()
        graph.edge_weight = (weight + weight.mT)[tuple(graph.edge_index)].double()
    return graphs


def test_weighted_shortest_paths_are_computed_or_taken_over() -> None:
    graphs = weighted((6, 6))
    computed = sample_templates(graphs, 2, NODES, structure="shortest_path").structure
    for graph in graphs:
        graph.structure = batched_shortest_paths(graph.edge_index, NODES, edge_weight=graph.edge_weight)
    taken = sample_templates(graphs, 2, NODES, structure="shortest_path").structure
    assert torch.equal(computed, taken)
    expected = torch.stack([graph.structure.reshape(NODES, NODES) for graph in graphs])
    assert sorted(computed.sum((1, 2)).tolist()) == pytest.approx(sorted(expected.sum((1, 2)).tolist()))


def test_a_weighted_graph_that_is_repeated_gets_noise_on_its_features() -> None:
    graphs = weighted((6,))
    templates = sample_templates(graphs, 3, NODES)
    assert torch.equal(templates.features[0], graphs[0].x)
    assert not torch.equal(templates.features[1], templates.features[2])
    assert torch.equal(templates.structure[1], templates.structure[0])
    assert float(templates.weights.sum()) == pytest.approx(3)


def test_directed_templates_stay_asymmetric() -> None:
    (graph,) = weighted((6,))
    keep = graph.edge_index[0] < graph.edge_index[1]
    graph.edge_index, graph.edge_weight = graph.edge_index[:, keep], graph.edge_weight[keep]
    one_way = sample_templates([graph], 1, NODES, directed=True).structure[0]
    both_ways = sample_templates([graph], 1, NODES).structure[0]
    assert float(one_way.tril().abs().max()) == 0
    torch.testing.assert_close(both_ways, (one_way + one_way.T) / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graphs": []}, "graphs: at least one graph is required"),
        ({"structure": "hops"}, "structure: must be one of adjacency, shortest_path, precomputed, got 'hops'"),
        ({"structure": "precomputed"}, "graphs: structure='precomputed' requires graphs with a structure"),
    ],
)
def test_bad_requests_are_refused(change: dict[str, Any], message: str) -> None:
    request = {"graphs": labelled(0, (6,), [0]), "num_templates": 2, "template_nodes": NODES, **change}
    with pytest.raises(ValueError, match=message):
        sample_templates(**request)
